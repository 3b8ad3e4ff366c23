#include "sim/programs/rings.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ring/doorbell.h"
#include "ring/ready_set.h"
#include "transport/mirrored_ring.h"
#include "transport/standing_rings.h"
#include "wire/control.h"

namespace faro::programs {
namespace {

const transport::Capabilities& capabilities_of_all() {
  static constexpr transport::Capabilities kCapabilities{.name = "manual", .mends = wire::kMends};
  return kCapabilities;
}

class ManualOutgoing final : public transport::MirroredOutgoing {
 public:
  ManualOutgoing(Port& port, uint32_t ring)
      : MirroredOutgoing(port.outgoing_base(ring), port.outgoing().ring_bytes,
                         port.peer_read(ring)),
        port_(port),
        ring_(ring) {}

  transport::Claim claim(uint32_t least_bytes, uint32_t most_bytes) override {
    const transport::Claim claimed = MirroredOutgoing::claim(least_bytes, most_bytes);
    port_.asks_for_room(ring_, claimed.bytes == 0);
    if (claimed.bytes == 0) port_.flush();
    return claimed;
  }
  void commit(uint32_t length) override {
    const Position from = producer_.committed();
    MirroredOutgoing::commit(length);
    port_.committed(ring_, from, length);
  }
  void post() override {
    note_transfer();
    port_.post(ring_, producer_.committed());
  }
  void post_soon() override {
    note_transfer();
    port_.post_soon(ring_, producer_.committed());
  }

 private:
  void note_transfer() {
    if (producer_.committed() != posted_) transport::count(counters_->transfers);
    mark_posted(producer_.committed());
  }
  void on_broken() override { port_.fail({Code::protocol_error, "an impossible read position"}); }

  Port& port_;
  const uint32_t ring_;
};

class ManualIncoming final : public transport::MirroredIncoming {
 public:
  ManualIncoming(Port& port, uint32_t ring)
      : MirroredIncoming(port.incoming_base(ring), port.incoming().ring_bytes, port.written(ring)),
        port_(port),
        ring_(ring) {}

 private:
  void tell_read(Position read) override { port_.tell_read(ring_, read); }
  void on_invalid(const char* why) override { port_.fail({Code::protocol_error, why}); }

  Port& port_;
  const uint32_t ring_;
};

class ManualLink final : public transport::DataLink {
 public:
  explicit ManualLink(std::shared_ptr<Port> port) : port_(std::move(port)) {
    for (uint32_t r = 0; r < port_->outgoing().ring_count(); ++r)
      outgoing_.push_back(std::make_unique<ManualOutgoing>(*port_, r));
    for (uint32_t r = 0; r < port_->incoming().ring_count(); ++r)
      incoming_.push_back(std::make_unique<ManualIncoming>(*port_, r));
    port_->set_link(this);
  }
  ~ManualLink() override {
    port_->set_link(nullptr);
    port_->stop();
  }

  Port& port() { return *port_; }
  const transport::Capabilities& capabilities() const override { return capabilities_of_all(); }
  transport::Outgoing& outgoing(uint32_t ring) override { return *outgoing_[ring]; }
  transport::Incoming& incoming(uint32_t ring) override { return *incoming_[ring]; }
  void stop() noexcept override { port_->stop(); }

 private:
  std::shared_ptr<Port> port_;
  std::vector<std::unique_ptr<ManualOutgoing>> outgoing_;
  std::vector<std::unique_ptr<ManualIncoming>> incoming_;
};

// Each side tells the other the key of its port.
class ManualSetup final : public transport::LinkSetup {
 public:
  ManualSetup(World& world, uint32_t node, transport::LinkContext& context)
      : world_(world), port_(std::make_shared<Port>(world, node, context)), context_(context) {}

  Status start() override {
    const uint64_t key = world_.add(port_);
    context_.send(std::as_bytes(std::span(&key, 1)));
    return Status::Ok();
  }
  Status on_message(std::span<const std::byte> message) override {
    uint64_t key = 0;
    if (message.size() != sizeof key) return {Code::protocol_error, "a set-up message"};
    std::memcpy(&key, message.data(), sizeof key);
    peer_ = world_.find_port(key);
    if (peer_ != nullptr) port_->attach(peer_);
    return Status::Ok();
  }
  Status on_stream(transport::DataStream) override {
    return {Code::protocol_error, "a data connection"};
  }
  Status status() const override { return Status::Ok(); }
  bool ready() const override { return peer_ != nullptr; }
  std::unique_ptr<transport::DataLink> take() override {
    return std::make_unique<ManualLink>(port_);
  }

 private:
  World& world_;
  const std::shared_ptr<Port> port_;
  transport::LinkContext& context_;
  std::shared_ptr<Port> peer_;
};

class ManualMending final : public transport::LinkMending {
 public:
  explicit ManualMending(Port& port) : port_(port) { port_.give_up_connection(); }
  Status start() override { return Status::Ok(); }
  Status on_message(std::span<const std::byte>) override {
    return {Code::protocol_error, "a set-up message"};
  }
  Status on_stream(transport::DataStream) override {
    return {Code::protocol_error, "a data connection"};
  }
  Status status() const override { return Status::Ok(); }
  bool ready() const override { return true; }
  Status finish() override { return port_.take_connection(); }

 private:
  Port& port_;
};

class ManualTransport final : public transport::Transport {
 public:
  ManualTransport(World& world, uint32_t node) : world_(world), node_(node) {}

  const transport::Capabilities& capabilities() const override { return capabilities_of_all(); }
  Status available() const override { return Status::Ok(); }
  uint64_t memory_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override {
    return outgoing.region_bytes() + incoming.region_bytes();
  }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext& context) override {
    return std::make_unique<ManualSetup>(world_, node_, context);
  }
  std::unique_ptr<transport::LinkMending> mend(transport::LinkContext&,
                                               transport::DataLink& link) override {
    if (world_.delivery() == Delivery::shared) return std::make_unique<transport::StandingRings>();
    return std::make_unique<ManualMending>(static_cast<ManualLink&>(link).port());
  }
  void flush() noexcept override {
    for (const auto& port : world_.ports()) {
      if (port->node() == node_) port->flush();
    }
  }

 private:
  World& world_;
  const uint32_t node_;
};

}  // namespace

std::unique_ptr<transport::Transport> make_transport(World& world, uint32_t node) {
  return std::make_unique<ManualTransport>(world, node);
}

// --- Port

Port::Port(World& world, uint32_t node, transport::LinkContext& context)
    : world_(world),
      node_(node),
      context_(context),
      outgoing_(context.outgoing),
      incoming_(context.incoming),
      outgoing_memory_(outgoing_.region_bytes() / sizeof(Line)),
      incoming_memory_(incoming_.region_bytes() / sizeof(Line)),
      sending_(outgoing_.ring_count()),
      receiving_(incoming_.ring_count()) {}

void Port::die() {
  stopped_ = true;
  const auto peer = peer_.lock();
  if (peer != nullptr) peer->fail({Code::peer_lost, "the data connection was reset"});
}

void Port::fail(const Status& cause) {
  if (stopped_ || std::exchange(failed_, true)) return;
  if (context_.events != nullptr) context_.events->on_link_failed(cause);
}

void Port::committed(uint32_t ring, Position from, uint32_t length) {
  const std::byte* const at = outgoing_base(ring) + (from & (outgoing_.ring_bytes - 1));
  sending_[ring].ends.push_back(from + wire::padded(length));
  world_.watcher().on_frame(*this, ring, from, {at, length});
}

void Port::post(uint32_t ring, Position to) {
  sending_[ring].posted = sending_[ring].soon = to;
  flush();
  if (world_.delivery() == Delivery::shared) (void)deliver(ring, UINT32_MAX);
}

void Port::post_soon(uint32_t ring, Position to) {
  if (world_.delivery() != Delivery::batched) return post(ring, to);
  sending_[ring].soon = to;
}

void Port::flush() {
  for (Sending& each : sending_) each.posted = each.soon;
}

void Port::tell_read(uint32_t ring, Position read) {
  receiving_[ring].released = read;
  if (world_.delivery() != Delivery::shared) return;
  if (const auto peer = peer_.lock()) (void)peer->deliver_read(ring);
}

bool Port::carries(const std::shared_ptr<Port>& peer) const {
  if (peer == nullptr || stopped_ || peer->stopped_) return false;
  return connection_ == Connection::stands && peer->connection_ == Connection::stands;
}

bool Port::is_dark(uint32_t from, uint32_t to) const {
  return world_.delivery() != Delivery::shared && world_.is_dark(from, to);
}

bool Port::deliver(uint32_t ring, uint32_t frames) {
  const auto peer = peer_.lock();
  if (!carries(peer) || is_dark(node_, peer->node_)) return false;
  Sending& s = sending_[ring];
  Receiving& r = peer->receiving_[ring];
  const Position from = r.written.load(std::memory_order_relaxed);
  Position to = s.posted;
  if (frames < s.ends.size()) to = std::min(to, s.ends[frames - 1]);
  if (to == from) return false;
  while (!s.ends.empty() && s.ends.front() <= to) s.ends.pop_front();
  const uint32_t bytes = outgoing_.ring_bytes;
  for (Position at = from; at < to;) {
    const uint64_t offset = at & (bytes - 1);
    const uint64_t run = std::min<uint64_t>(to - at, bytes - offset);
    std::memcpy(peer->incoming_base(ring) + offset, outgoing_base(ring) + offset, run);
    at += run;
  }
  r.written.store(to, std::memory_order_seq_cst);
  const uint32_t receiver = peer->incoming_.receiver_of(ring);
  const transport::WorkerEnd& worker = peer->context_.workers[receiver];
  worker.ready->mark(peer->context_.ready_group[receiver] * ring::ReadySet::kRingsPerGroup +
                     peer->incoming_.index_at_receiver(ring));
  ring::ring_for_frames(*worker.doorbell);
  return true;
}

bool Port::deliver_read(uint32_t ring) {
  const auto peer = peer_.lock();
  if (!carries(peer) || is_dark(peer->node_, node_)) return false;
  Sending& s = sending_[ring];
  const Position released = peer->receiving_[ring].released;
  if (s.peer_read.load(std::memory_order_relaxed) == released) return false;
  s.peer_read.store(released, std::memory_order_seq_cst);
  if (std::exchange(s.asks_for_room, false))
    ring::ring_doorbell(*context_.workers[outgoing_.sender_of(ring)].doorbell);
  return true;
}

void Port::deliver_all() {
  for (uint32_t ring = 0; ring < outgoing_.ring_count(); ++ring) {
    (void)deliver(ring, UINT32_MAX);
    (void)deliver_read(ring);
  }
}

void Port::break_connection() {
  connection_ = Connection::broken;
  fail({Code::peer_lost, "the data connection was cut"});
}

void Port::cut() {
  const auto peer = peer_.lock();
  if (world_.delivery() == Delivery::shared || !carries(peer)) return;
  break_connection();
  peer->break_connection();
}

void Port::give_up_connection() { connection_ = Connection::broken; }

Status Port::take_connection() {
  const auto peer = peer_.lock();
  if (peer == nullptr || peer->stopped_) return {Code::peer_lost, "the other end is closed"};
  connection_ = Connection::waits_for_peer;
  if (peer->connection_ != Connection::waits_for_peer) return Status::Ok();
  connection_ = peer->connection_ = Connection::stands;
  go_on();
  peer->go_on();
  return Status::Ok();
}

}  // namespace faro::programs
