#include "sim/programs/world.h"

#include <utility>

#include "faro/hash.h"
#include "sim/programs/rings.h"

namespace faro::programs {

// --- World

ManualNetwork* World::find(const std::string& address) const {
  for (ManualNetwork* const each : networks_) {
    if (each->listens() && each->local_address() == address) return each;
  }
  return nullptr;
}

void World::pass(base::Nanoseconds time) {
  constexpr base::Nanoseconds kSoon = 100'000;
  clock_.advance(time);
  if (clock_.now_ns() - flushed_at_ < kSoon) return;
  flushed_at_ = clock_.now_ns();
  for (const auto& port : ports()) port->flush();
}

// A round may have done something though it says that nothing has come: it takes two of them to be
// sure.
template <typename Round>
void World::repeat_until_quiet(const Round& round) {
  constexpr int kQuietRounds = 2;
  constexpr int kRoundLimit = 200;
  int quiet = 0;
  for (int i = 0; i < kRoundLimit && quiet < kQuietRounds; ++i) quiet = round() ? 0 : quiet + 1;
}

void World::pump() {
  repeat_until_quiet([this] {
    bool worked = false;
    for (const auto& [key, round] : rounds_) worked |= round();
    return worked;
  });
}

void World::run(uint32_t key) {
  repeat_until_quiet([&] {
    const auto round = rounds_.find(key);
    return round != rounds_.end() && round->second();
  });
}

uint64_t World::add(const std::shared_ptr<Port>& port) {
  ports_[++last_port_] = port;
  return last_port_;
}

std::shared_ptr<Port> World::find_port(uint64_t key) const {
  const auto found = ports_.find(key);
  return found == ports_.end() ? nullptr : found->second.lock();
}

std::vector<std::shared_ptr<Port>> World::ports() const {
  std::vector<std::shared_ptr<Port>> ports;
  for (const auto& [key, weak] : ports_) {
    if (auto port = weak.lock()) ports.push_back(std::move(port));
  }
  return ports;
}

void World::deliver_all() {
  for (const auto& port : ports()) port->deliver_all();
}

// --- Stream

namespace {

class ManualConnection final : public links::ControlConnection {
 public:
  explicit ManualConnection(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~ManualConnection() override { stream_->detach(); }
  void set_handler(Handler* handler) override { stream_->set_handler(handler); }
  void send(std::span<const std::byte> message) override { stream_->send(message); }
  bool flushed() const override { return true; }
  const std::string& peer_address() const override { return stream_->peer_address(); }

 private:
  const std::shared_ptr<Stream> stream_;
};

}  // namespace

bool Stream::is_watched(const Stream* peer) const {
  return peer != nullptr && network_ != nullptr && peer->network_ != nullptr &&
         network_->world().control_watcher() != nullptr;
}

void Stream::send(std::span<const std::byte> message) {
  const auto peer = peer_.lock();
  if (ended_ || detached_ || peer == nullptr || peer->ended_ || peer->detached_) return;
  peer->arrived_.emplace_back(message.begin(), message.end());
  if (is_watched(peer.get()))
    network_->world().control_watcher()->on_message(*network_, *peer->network_, number_, message);
}

void Stream::detach() {
  handler_ = nullptr;
  if (std::exchange(detached_, true)) return;
  arrived_.clear();
  const auto peer = peer_.lock();
  if (peer == nullptr) return;
  if (!ended_ && is_watched(peer.get()))
    network_->world().control_watcher()->on_close(*network_, *peer->network_, number_);
  peer->end("the peer closed the connection", false);
}

void Stream::cut(bool loses) {
  if (const auto peer = peer_.lock()) peer->end("the connection was reset", loses);
  end("the connection was reset", loses);
}

bool Stream::has_news() const {
  if (handler_ == nullptr || told_ || (arrived_.empty() && !ended_)) return false;
  const auto peer = peer_.lock();
  if (peer == nullptr || network_ == nullptr || peer->network_ == nullptr) return true;
  return !network_->world().is_dark(peer->network_->node(), network_->node());
}

void Stream::end(const char* cause, bool loses) {
  if (ended_) return;
  ended_ = true;
  if (loses) arrived_.clear();
  cause_ = Status(Code::peer_lost, cause);
}

bool Stream::deliver() {
  const auto self = shared_from_this();  // the handler may destroy the handle
  bool worked = false;
  while (has_news() && !arrived_.empty()) {
    const std::vector<std::byte> message = std::move(arrived_.front());
    arrived_.pop_front();
    worked = true;
    handler_->on_message(message);
  }
  if (has_news()) {
    told_ = worked = true;
    handler_->on_closed(cause_);
  }
  return worked;
}

bool Stream::leads_to(const ManualNetwork& network) const {
  const auto peer = peer_.lock();
  return !ended_ && !detached_ && peer != nullptr && peer->network_ == &network;
}

// --- ManualNetwork

ManualNetwork::ManualNetwork(World& world, uint32_t node, uint32_t life, std::string address)
    : world_(world),
      node_(node),
      life_(life),
      address_(std::move(address)),
      transport_(make_transport(world, node)) {
  world.add(*this);
}

ManualNetwork::~ManualNetwork() {
  world_.remove(*this);
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) {
      stream->cut();
      stream->forget_network();
    }
  }
  tasks_.clear();
}

void ManualNetwork::die(bool loses) {
  dead_ = true;
  hang_up(loses);
  for (const auto& port : world_.ports()) {
    if (port->node() == node_) port->die();
  }
}

void ManualNetwork::hang_up(bool loses) {
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->cut(loses);
  }
}

void ManualNetwork::cut(const ManualNetwork& peer) {
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (stream != nullptr && stream->leads_to(peer)) stream->cut();
  }
}

std::shared_ptr<Stream> ManualNetwork::make_stream(std::string peer_address) {
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  auto stream = std::make_shared<Stream>(*this, std::move(peer_address));
  streams_.push_back(stream);
  return stream;
}

// Who has connected and was not accepted is turned away.
void ManualNetwork::set_acceptor(Acceptor* acceptor) {
  acceptor_ = acceptor;
  if (acceptor == nullptr) arrived_.clear();
}

void ManualNetwork::connect(
    const std::string& address,
    std::function<void(Result<std::unique_ptr<links::ControlConnection>>)> done) {
  ManualNetwork* const peer = dead_ ? nullptr : world_.find(address);
  const bool is_dark =
      peer != nullptr && (world_.is_dark(node_, peer->node_) || world_.is_dark(peer->node_, node_));
  const bool is_answered = peer != nullptr && !is_dark;
  if (world_.control_watcher() != nullptr)
    world_.control_watcher()->on_dial(*this, address, is_answered);
  if (!is_answered) {
    const Status why = is_dark ? Status(Code::connect_failed, "connect to " + address + ": no way")
                               : Status(Code::peer_lost, "connect to " + address + ": refused");
    return defer([why, done = std::move(done)] { done(why); });
  }
  const auto ours = make_stream(address);
  const auto theirs = peer->make_stream(address_);
  const bool is_higher = node_ > peer->node_;
  Stream::join(ours, theirs, 2 * ++dialled_[peer->node_] + is_higher);
  // A task has to be copyable: what it owns is taken out when it runs. If it never runs, the
  // connection ends.
  const auto our_end = std::make_shared<std::unique_ptr<links::ControlConnection>>(
      std::make_unique<ManualConnection>(ours));
  peer->arrived_.push_back(std::make_unique<ManualConnection>(theirs));
  defer([our_end, done = std::move(done)] { done(std::move(*our_end)); });
}

bool ManualNetwork::run_once(base::Nanoseconds until) {
  while (!work()) {
    if (!wait_ || world_.clock().now_ns() >= until) return false;
    wait_();
  }
  return true;
}

bool ManualNetwork::work() {
  bool worked = std::exchange(woken_, false);
  for (; !arrived_.empty(); arrived_.pop_front()) {
    worked = true;
    acceptor_->on_connection(std::move(arrived_.front()));
  }
  for (std::deque<std::function<void()>> tasks = std::exchange(tasks_, {}); !tasks.empty();
       tasks.pop_front()) {
    worked = true;
    tasks.front()();
  }
  const std::vector<std::weak_ptr<Stream>> streams = streams_;  // a handler may dial
  for (const auto& weak : streams) {
    if (const auto stream = weak.lock()) worked |= stream->deliver();
  }
  work_count_ += worked;
  return worked;
}

bool ManualNetwork::draw_random(std::span<std::byte> bytes) {
  uint64_t word = FinalizerHash()((uint64_t{node_} + 1) << 32 | (life_ + 1));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(word >> (8 * (i % 8)));
  return true;
}

// --- ManualWaiter

void ManualWaiter::pass(uint64_t ns) noexcept {
  world_.pass(ns);
  world_.deliver_all();
  world_.pump();
}

}  // namespace faro::programs
