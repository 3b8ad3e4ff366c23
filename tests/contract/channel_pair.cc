// Channels of endpoints in the contract suite, over shm, tcp, and tcp with TLS, and over verbs where the environment says so
// (support/test_network.h): a channel for each lane's ring, which carries it both ways; worker w of a side is poller w of
// its endpoint.
//
// A frame of the suite travels as the bytes behind its header. The header lies where the channel writes its own, and is
// made anew at the other end: what the suite finds in it says nothing, what it finds behind it does.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "contract/transport_pair.h"
#include "faro/endpoint.h"
#include "support/data_header.h"
#include "support/endpoint_config.h"
#include "support/test_network.h"

namespace faro::test {
namespace {

constexpr uint32_t kHeaderBytes = sizeof(wire::FrameHeader);

/// Which lane's ring, from a worker of side 0 to one of side 1; the greeting of its channel.
struct Lane {
  uint32_t worker[2] = {0, 0};  // of each side
  uint32_t k = 0;

  uint32_t ring_from(int side, const ring::Layout& layout) const {
    return layout.ring(worker[side], worker[1 - side], k);
  }
};

/// A channel at one side: the sending end of its ring.
class ChannelOutgoing final : public transport::Outgoing {
 public:
  ChannelOutgoing(Poller& poller, ChannelId id) : poller_(poller), id_(id) {}

  transport::Claim claim(uint32_t least_bytes, uint32_t most_bytes) override {
    std::span<std::byte> room;
    if (poller_.claim(id_, least_bytes - kHeaderBytes, most_bytes - kHeaderBytes, room) !=
        Outcome::done)
      return {};
    return {room.data() - kHeaderBytes, static_cast<uint32_t>(room.size()) + kHeaderBytes};
  }
  void commit(uint32_t length) override {
    EXPECT_EQ(poller_.commit(id_, length - kHeaderBytes), Outcome::done);
    pending_bytes_ += wire::padded(length);
  }
  void post() override {
    poller_.post();
    pending_bytes_ = 0;
  }
  uint64_t pending_bytes() const override { return pending_bytes_; }
  uint32_t frame_limit() const override {
    return poller_.info(id_).value().least_frame_bytes + kHeaderBytes;
  }
  uint32_t full_frame_limit() const override { return wire::full_frame_limit(memory().size()); }
  std::span<std::byte> memory() const override { return poller_.rings(id_).value().outgoing; }
  const transport::OutgoingCounters& counters() const override { return counters_; }
  void count_in(transport::OutgoingCounters&) override {}

 private:
  Poller& poller_;
  const ChannelId id_;
  uint64_t pending_bytes_ = 0;
  transport::OutgoingCounters counters_;  // nothing counts in them
};

class Station;

/// The receiving end.
class ChannelIncoming final : public transport::Incoming {
 public:
  ChannelIncoming(Station& station, ChannelId id) : station_(station), id_(id) {}

  transport::Next next(transport::FrameView& view) override;
  void release(uint32_t token) override;
  void flush_releases() override;
  uint64_t unreleased_bytes() const override {
    uint64_t bytes = 0;
    for (const auto& [token, held] : held_) bytes += held;
    return bytes;
  }
  bool may_block_sender() const override { return unreleased_bytes() > memory().size() / 2; }
  std::span<const std::byte> memory() const override;
  const transport::IncomingCounters& counters() const override { return counters_; }
  void count_in(transport::IncomingCounters&) override {}

  void told(const ChannelEvent& frame) { told_.push_back(frame); }

 private:
  Station& station_;
  const ChannelId id_;
  std::deque<ChannelEvent> told_;      // and not given out
  std::map<uint32_t, uint64_t> held_;  // tokens of what was given out, with its bytes
  uint16_t number_ = 0;
  transport::IncomingCounters counters_;  // nothing counts in them
};

/// A channel at one side.
struct End {
  Lane lane;
  ChannelId id;
  ChannelOutgoing out;
  ChannelIncoming in;
};

/// A poller, and its channels.
class Station {
 public:
  explicit Station(Poller& poller) : poller_(poller) {}
  Poller& poller() { return poller_; }

  /// Takes what there is to tell now, having waited as long as that; whether there was anything.
  bool turn(Wait wait) {
    (void)poller_.wait(wait);
    return take();
  }
  bool take() {
    std::array<ChannelEvent, 16> some;
    const auto events = poller_.poll(some);
    for (const ChannelEvent& event : events) {
      if (event.kind == ChannelEvent::Kind::opened) open(event.channel);
      if (event.kind == ChannelEvent::Kind::closed) closed(event.channel);
      if (event.kind != ChannelEvent::Kind::frame) continue;
      for (const auto& end : ends_) {
        if (end->id == event.channel) end->in.told(event);
      }
    }
    return !events.empty();
  }

  std::span<const std::unique_ptr<End>> ends() const { return ends_; }
  int failures() const { return failures_; }
  const Status& failure() const { return failure_; }

 private:
  void open(ChannelId id) {
    const ChannelInfo info = poller_.info(id).value();
    Lane lane;
    ASSERT_EQ(info.greeting.size(), sizeof lane);
    std::memcpy(&lane, info.greeting.data(), sizeof lane);
    ends_.emplace_back(new End{lane, id, {poller_, id}, {*this, id}});
  }
  void closed(ChannelId id) {
    const Status cause = poller_.status(id);
    if (cause.ok() || cause.code() == Code::closed) return;
    if (failures_++ == 0) failure_ = cause;
  }

  Poller& poller_;
  std::vector<std::unique_ptr<End>> ends_;
  int failures_ = 0;
  Status failure_;
};

transport::Next ChannelIncoming::next(transport::FrameView& view) {
  if (told_.empty()) station_.take();
  if (told_.empty()) {
    return held_.size() == ring::Consumer::kTracked ? transport::Next::full
                                                    : transport::Next::nothing;
  }
  const ChannelEvent frame = told_.front();
  told_.pop_front();
  const auto length = static_cast<uint32_t>(frame.data.size()) + kHeaderBytes;
  view.header = data_header(length);
  view.header.slot = number_++;
  view.payload = frame.data.data();
  view.token = frame.token;
  held_[frame.token] = wire::padded(length);
  return transport::Next::frame;
}
void ChannelIncoming::release(uint32_t token) {
  held_.erase(token);
  station_.poller().release(id_, token);
}
void ChannelIncoming::flush_releases() { (void)station_.poller().wait(Wait::none()); }
std::span<const std::byte> ChannelIncoming::memory() const {
  return station_.poller().rings(id_).value().incoming;
}

class ChannelPair final : public TransportPair {
 public:
  static Result<std::unique_ptr<TransportPair>> open(const PairShape& shape, const Config& config) {
    std::unique_ptr<ChannelPair> pair(new ChannelPair(shape));
    FARO_RETURN_IF_ERROR(pair->connect(config));
    return std::unique_ptr<TransportPair>(std::move(pair));
  }

  transport::DataLink& link(int side) override { return sides_[side]; }
  // The cases that need these are skipped (no_inside_because).
  ring::ReadySet& ready_set(int, uint32_t) override { return no_ready_set_; }
  ring::DoorbellLine& doorbell(int, uint32_t) override { return no_doorbell_; }
  uint32_t first_ready(int, uint32_t) override { return 0; }

  bool pump() override {
    const bool worked = poll(0);
    return poll(1) || worked;
  }
  void run_network_threads() override {}  // an endpoint has its own
  bool poll(int side) override {
    bool worked = false;
    for (Station& station : sides_[side].stations) worked |= station.turn(Wait::none());
    return worked;
  }
  void drop(int side) override { sides_[side].endpoint->close(); }
  int failures(int side) override {
    int failures = 0;
    for (const Station& station : sides_[side].stations) failures += station.failures();
    return failures;
  }
  Status failure(int side) override {
    for (const Station& station : sides_[side].stations) {
      if (station.failures() > 0) return station.failure();
    }
    return Status::Ok();
  }

 private:
  struct Side final : transport::DataLink {
    const transport::Capabilities& capabilities() const override { return able; }
    transport::Outgoing& outgoing(uint32_t ring) override { return rings_out[ring]->out; }
    transport::Incoming& incoming(uint32_t ring) override { return rings_in[ring]->in; }
    void stop() noexcept override {
      for (Station& station : stations) {
        for (const auto& end : station.ends()) station.poller().close(end->id, Closing::now);
      }
    }

    std::unique_ptr<Endpoint> endpoint;
    std::deque<Station> stations;  // by worker
    std::string transport;
    transport::Capabilities able;
    std::vector<End*> rings_out;  // by ring
    std::vector<End*> rings_in;
  };

  explicit ChannelPair(const PairShape& shape) : shape_(shape) {}
  const ring::Layout& layout_from(int side) const { return side == 0 ? shape_.forth : shape_.back; }

  Status connect(const Config& config) {
    const uint32_t workers[] = {shape_.forth.sender_workers, shape_.forth.receiver_ends};
    for (int side = 0; side < 2; ++side) {
      EndpointSpec spec{.poller_count = workers[side]};
      if (side == 1) {
        spec.accept = [](const ChannelRequest& request) {
          Lane lane;
          std::memcpy(&lane, request.greeting.data(), sizeof lane);
          return ChannelAcceptance{.poller = lane.worker[1]};
        };
      }
      Config own = config;
      if (names_addresses()) {
        FARO_RETURN_IF_ERROR(
            own.set("cluster.listen", listen_address(static_cast<uint32_t>(side))));
        FARO_RETURN_IF_ERROR(own.set("security.open", 1));
      }
      FARO_ASSIGN_OR_RETURN(sides_[side].endpoint, Endpoint::open(own, std::move(spec)));
      for (uint32_t w = 0; w < workers[side]; ++w)
        sides_[side].stations.emplace_back(sides_[side].endpoint->poller(w));
    }
    for (uint32_t ring = 0; ring < shape_.forth.ring_count(); ++ring) {
      FARO_RETURN_IF_ERROR(dial(ring));
      // Not all at once: of connections that have not said who they are an endpoint drops some when they are many.
      constexpr uint32_t kAtATime = 32;
      if (ring % kAtATime == kAtATime - 1) FARO_RETURN_IF_ERROR(open(ring + 1));
    }
    FARO_RETURN_IF_ERROR(open(shape_.forth.ring_count()));
    for (int side = 0; side < 2; ++side) number_rings(side);
    return Status::Ok();
  }

  Status dial(uint32_t ring) {
    const Lane lane{{shape_.forth.sender_of(ring), shape_.forth.receiver_of(ring)},
                    ring % shape_.forth.rings_per_lane};
    ChannelSpec spec{.send_bytes = shape_.forth.ring_bytes,
                     .receive_bytes = shape_.back.ring_bytes};
    const auto greeting = std::as_bytes(std::span(&lane, 1));
    spec.greeting.assign(greeting.begin(), greeting.end());
    Poller& poller = sides_[0].stations[lane.worker[0]].poller();
    return poller.connect(sides_[1].endpoint->address(), spec).status();
  }

  /// Until that many have opened at both sides.
  Status open(uint32_t channels) {
    const base::Nanoseconds deadline = base::SystemClock::instance().now_ns() + kLimit;
    for (Side& side : sides_) {
      for (size_t open = 0; open < channels;) {
        if (base::SystemClock::instance().now_ns() >= deadline)
          return {Code::deadline_exceeded, "not all channels have opened"};
        open = 0;
        for (Station& station : side.stations) {
          station.turn(Wait::at_most(std::chrono::milliseconds(1)));
          FARO_RETURN_IF_ERROR(station.failure());
          open += station.ends().size();
        }
      }
    }
    return Status::Ok();
  }

  void number_rings(int side) {
    Side& at = sides_[side];
    at.rings_out.resize(layout_from(side).ring_count());
    at.rings_in.resize(layout_from(1 - side).ring_count());
    for (Station& station : at.stations) {
      for (const auto& end : station.ends()) {
        at.rings_out[end->lane.ring_from(side, layout_from(side))] = end.get();
        at.rings_in[end->lane.ring_from(1 - side, layout_from(1 - side))] = end.get();
        at.transport = station.poller().info(end->id).value().transport;
      }
    }
    at.able = {.name = at.transport};
  }

  const PairShape shape_;
  Side sides_[2];
  ring::ReadySet no_ready_set_{1};
  ring::DoorbellLine no_doorbell_{};
};

bool add_channels(std::string name, const std::string& transport) {
  return add_transport({
      .name = std::move(name),
      .open =
          [transport](const PairShape& shape) {
            return ChannelPair::open(shape, endpoint_config(transport));
          },
      .many_frames = 20'000,
      .no_inside_because = "a channel shows no doorbell, ready set or counters, posts when its "
                           "poller waits, and takes no claims once it "
                           "has closed",
      .no_nodes_because = "a channel has one ring each way",
      .no_loss_because = "an endpoint that is closed says goodbye; channel_trouble_test kills some",
  });
}

[[maybe_unused]] const bool channel_added = [] {
  for (const std::string& transport : transports_to_test({"shm", "tcp"}))
    add_channels(transport + "_channel", transport);
  return add_channels("tcp_tls_channel", "tls");
}();

}  // namespace
}  // namespace faro::test
