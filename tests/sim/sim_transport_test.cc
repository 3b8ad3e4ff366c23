// The simulated transport: what verbs would do, at the worst moments, and that it notices misuse.
#include "lab/simulation/transport/sim_transport.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "sim/seeds.h"
#include "sim/sim_pair.h"
#include "support/expect.h"

namespace faro::sim {
namespace {

using ring::FrameView;
using ring::Layout;
using ring::Next;
using test::for_each_seed;
using test::send_frame;
using test::SimPair;

// The k-th frame of a ring: its bytes say which one it is, and where in it they stand.
std::vector<std::byte> make_payload(uint32_t ring, uint64_t k, uint64_t bytes) {
  std::vector<std::byte> payload(bytes);
  uint64_t x = (uint64_t{ring} << 48) + k * 0x9E3779B97F4A7C15u + 1;
  for (std::byte& b : payload) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    b = static_cast<std::byte>(x);
  }
  return payload;
}

bool is_payload(const FrameView& view, const std::vector<std::byte>& expected) {
  return view.payload_bytes() == expected.size() &&
         std::memcmp(view.payload, expected.data(), expected.size()) == 0;
}

// Sizes of the frames of a ring, known to both ends.
std::vector<uint64_t> draw_sizes(Random& random, uint32_t frame_limit, uint64_t count) {
  std::vector<uint64_t> sizes(count);
  const uint64_t most = frame_limit - sizeof(wire::FrameHeader);
  for (uint64_t& size : sizes) {
    size = random.one_in(4) ? most : random.between(1, random.one_in(2) ? 64 : most);
  }
  return sizes;
}

// One worker's program at each end: sends through every ring of its own, reads what arrives, sleeps
// when there is nothing to do, with the protocol of ring/doorbell.h.
class Worker {
 public:
  Worker(World& world, SimPair& pair, uint32_t side, uint32_t worker,
         const std::vector<std::vector<uint64_t>>& send_sizes,
         const std::vector<std::vector<uint64_t>>& receive_sizes)
      : world_(world),
        waiter_(world),
        pair_(pair),
        side_(side),
        worker_(worker),
        send_sizes_(send_sizes),
        receive_sizes_(receive_sizes) {
    const transport::LinkContext& context = pair.side(side).context;
    for (uint32_t r = 0; r < context.outgoing.ring_count(); ++r) {
      if (context.outgoing.sender_of(r) == worker) to_send_.push_back({r});
    }
    for (uint32_t r = 0; r < context.incoming.ring_count(); ++r) {
      if (context.incoming.receiver_of(r) == worker) to_receive_.push_back({r});
    }
  }

  void run() {
    ring::Doorbell doorbell(&pair_.side(side_).doorbells[worker_]);
    while (!done()) {
      if (work()) continue;
      flush();
      doorbell.arm();
      world_.maybe_yield();
      if (work()) {
        doorbell.disarm();
        continue;
      }
      // No limit: a lost wake-up is a deadlock, and reported.
      waiter_.sleep(doorbell, base::kForever);
    }
    flush();
  }

 private:
  struct End {
    uint32_t ring;
    uint64_t next = 0;
    std::vector<uint32_t> held = {};
  };

  bool done() const {
    for (const End& e : to_send_) {
      if (e.next != send_sizes_[e.ring].size()) return false;
    }
    for (const End& e : to_receive_) {
      if (e.next != receive_sizes_[e.ring].size() || !e.held.empty()) return false;
    }
    return true;
  }

  bool work() {
    bool any = false;
    for (End& e : to_send_) any |= send_some(e);
    pair_.side(side_).ready[worker_]->take([&](uint32_t number) {
      for (End& e : to_receive_) {
        if (pair_.ready_number(side_, e.ring) == number) any |= receive_some(e);
      }
    });
    for (End& e : to_receive_) any |= release_some(e);
    return any;
  }

  bool send_some(End& e) {
    transport::Outgoing& outgoing = pair_.link(side_).outgoing(e.ring);
    bool any = false;
    for (uint64_t most = world_.random().between(1, 4); most > 0; --most) {
      if (e.next == send_sizes_[e.ring].size()) break;
      if (!send_frame(outgoing, make_payload(e.ring, e.next, send_sizes_[e.ring][e.next]))) break;
      ++e.next;
      any = true;
      if (world_.random().one_in(3)) outgoing.post();
    }
    return any;
  }

  bool receive_some(End& e) {
    transport::Incoming& incoming = pair_.link(side_).incoming(e.ring);
    FrameView view;
    bool any = false;
    Next next = Next::nothing;
    for (uint64_t most = world_.random().between(1, 4); most > 0; --most) {
      next = incoming.next(view);
      if (next != Next::frame) break;
      any = true;
      require(e.next < receive_sizes_[e.ring].size());
      require(is_payload(view, make_payload(e.ring, e.next, receive_sizes_[e.ring][e.next])));
      ++e.next;
      e.held.push_back(view.token);
    }
    if (next == Next::frame || next == Next::full) {
      pair_.side(side_).ready[worker_]->mark(pair_.ready_number(side_, e.ring));  // left non-empty
    }
    return any;
  }

  // Some of the held frames, in any order.
  bool release_some(End& e) {
    if (e.held.empty()) return false;
    for (uint64_t most = world_.random().between(1, e.held.size()); most > 0; --most) {
      const uint64_t i = world_.random().below(e.held.size());
      const uint32_t token = e.held[i];
      e.held.erase(e.held.begin() + static_cast<std::ptrdiff_t>(i));
      pair_.link(side_).incoming(e.ring).release(token);
    }
    return true;
  }

  void flush() {
    for (End& e : to_send_) pair_.link(side_).outgoing(e.ring).post();
    for (End& e : to_receive_) pair_.link(side_).incoming(e.ring).flush_releases();
  }

  void require(bool good) {
    if (!good) world_.violation("a frame that was not sent, or another one, or changed");
  }

  World& world_;
  SimWaiter waiter_;
  SimPair& pair_;
  const uint32_t side_;
  const uint32_t worker_;
  const std::vector<std::vector<uint64_t>>& send_sizes_;
  const std::vector<std::vector<uint64_t>>& receive_sizes_;
  std::vector<End> to_send_;
  std::vector<End> to_receive_;
};

// A whole random link under full load; returns the hash of what happened.
uint64_t run_link(uint64_t seed) {
  Random shape(seed ^ 0x5eed);
  const uint32_t workers[2] = {static_cast<uint32_t>(shape.between(1, 3)),
                               static_cast<uint32_t>(shape.between(1, 3))};
  const auto ring_bytes = static_cast<uint32_t>(4096u << shape.below(4));
  const auto lane_rings = static_cast<uint32_t>(shape.between(1, 2));
  const Layout layouts[2] = {{workers[0], workers[1], lane_rings, ring_bytes},
                             {workers[1], workers[0], lane_rings, ring_bytes}};
  World world(seed);
  SimPair pair(world, layouts[0], layouts[1]);
  std::vector<std::vector<uint64_t>> sizes[2];
  for (int side = 0; side < 2; ++side) {
    for (uint32_t r = 0; r < layouts[side].ring_count(); ++r) {
      sizes[side].push_back(draw_sizes(shape, wire::frame_limit(ring_bytes), shape.below(80)));
    }
  }
  std::vector<std::unique_ptr<Worker>> programs;
  for (uint32_t side = 0; side < 2; ++side) {
    for (uint32_t w = 0; w < workers[side]; ++w) {
      programs.push_back(
          std::make_unique<Worker>(world, pair, side, w, sizes[side], sizes[1 - side]));
      world.spawn("node " + std::to_string(side) + " worker " + std::to_string(w),
                  [program = programs.back().get()] { program->run(); });
    }
  }
  const Status status = world.run();
  EXPECT_TRUE(status.ok()) << world.report();
  EXPECT_EQ(pair.side(0).failures + pair.side(1).failures, 0) << pair.side(0).cause.to_string();
  EXPECT_TRUE(world.settle().ok()) << world.report();
  return world.trace_hash();
}

TEST(SimTransport, carries_everything_once_whole_and_in_order) {
  for_each_seed(200, [](uint64_t seed) { run_link(seed); });
}

TEST(SimTransport, the_same_seed_gives_exactly_the_same_run) {
  for_each_seed(10, [](uint64_t seed) { EXPECT_EQ(run_link(seed), run_link(seed)); });
}

constexpr Layout kSmall{1, 1, 2, 4096};

TEST(SimTransport, bytes_arrive_before_they_are_notified_and_rings_overtake_each_other) {
  int overtaken = 0;
  int bytes_first = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    SimPair pair(world, kSmall, kSmall);
    const auto payload = make_payload(0, 0, 900);
    for (uint32_t ring = 0; ring < 2; ++ring) {
      ASSERT_TRUE(send_frame(pair.link(0).outgoing(ring), payload));
      pair.link(0).outgoing(ring).post();
    }
    std::vector<uint32_t> arrived;
    while (arrived.size() < 2) {
      ASSERT_TRUE(world.step()) << world.report();
      pair.side(1).ready[0]->take([&](uint32_t number) {
        const uint32_t ring = number == pair.ready_number(1, 0) ? 0 : 1;
        arrived.push_back(ring);
        FrameView view;
        ASSERT_EQ(pair.link(1).incoming(ring).next(view), Next::frame);
        EXPECT_TRUE(is_payload(view, payload)) << "seed " << seed;
      });
      ++bytes_first;
    }
    overtaken += arrived[0] == 1;
  }
  EXPECT_GT(overtaken, 10);
  EXPECT_LT(overtaken, 90);
  EXPECT_GT(bytes_first, 400) << "a transfer is more than one event";
}

TEST(SimTransport, space_is_free_only_after_completion_and_read_notification) {
  Knobs knobs;
  knobs.completion = {50'000'000, 50'000'000};
  World world(1, knobs);
  SimPair pair(world, kSmall, kSmall);
  transport::Outgoing& outgoing = pair.link(0).outgoing(0);
  const auto payload = make_payload(0, 0, 1000);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(send_frame(outgoing, payload));
  outgoing.post();
  transport::Incoming& incoming = pair.link(1).incoming(0);
  FrameView view;
  int received = 0;
  Nanoseconds released = 0;
  while (outgoing.claim(1024, 1024).bytes == 0) {
    ASSERT_TRUE(world.step()) << world.report();
    if (received < 4 && incoming.next(view) == Next::frame) {
      incoming.release(view.token);
      ++received;
      released = world.now();
    }
  }
  EXPECT_EQ(received, 4);
  EXPECT_GT(world.now(), released + 40'000'000);
}

TEST(SimTransport, posts_beyond_the_queue_follow_when_a_transfer_has_completed) {
  Knobs knobs;
  knobs.transfers_in_flight = 1;
  World world(1, knobs);
  SimPair pair(world, kSmall, kSmall);
  transport::Outgoing& outgoing = pair.link(0).outgoing(0);
  for (uint64_t k = 0; k < 4; ++k) {
    ASSERT_TRUE(send_frame(outgoing, make_payload(0, k, 500)));
    outgoing.post();
    EXPECT_EQ(outgoing.pending_bytes(), 0u);
  }
  EXPECT_EQ(outgoing.counters().transfers.load(), 1u);
  ASSERT_TRUE(world.settle().ok()) << world.report();
  EXPECT_EQ(outgoing.counters().transfers.load(), 2u);
  FrameView view;
  for (uint64_t k = 0; k < 4; ++k) {
    ASSERT_EQ(pair.link(1).incoming(0).next(view), Next::frame);
    EXPECT_TRUE(is_payload(view, make_payload(0, k, 500)));
  }
}

TEST(SimTransport, notices_that_bytes_change_while_they_are_transferred) {
  World world(1);
  SimPair pair(world, kSmall, kSmall);
  transport::Outgoing& outgoing = pair.link(0).outgoing(0);
  std::byte* at = outgoing.claim(64, 64).data;
  ASSERT_TRUE(send_frame(outgoing, make_payload(0, 0, 40)));
  outgoing.post();
  at[30] ^= std::byte{1};
  EXPECT_TRUE(test::contains(world.settle().to_string(), "of the outgoing ring were changed"));
}

TEST(SimTransport, nothing_arrives_after_stop) {
  for (uint32_t stopped = 0; stopped < 2; ++stopped) {
    World world(1);
    SimPair pair(world, kSmall, kSmall);
    ASSERT_TRUE(send_frame(pair.link(0).outgoing(0), make_payload(0, 0, 900)));
    pair.link(0).outgoing(0).post();
    pair.link(stopped).stop();
    pair.link(stopped).stop();
    ASSERT_TRUE(world.settle().ok()) << world.report();
    FrameView view;
    EXPECT_EQ(pair.link(1).incoming(0).next(view), Next::nothing);
    EXPECT_FALSE(pair.side(1).ready[0]->any());
    EXPECT_EQ(pair.side(stopped).failures, 0) << "who stops is not told";
    EXPECT_EQ(pair.side(1 - stopped).failures, stopped == 1 ? 1 : 0) << "who was sending is";
  }
}

TEST(SimTransport, sending_to_an_end_that_is_gone_fails_the_link_once) {
  World world(1);
  SimPair pair(world, kSmall, kSmall);
  pair.side(1).link.reset();
  for (uint32_t ring = 0; ring < 2; ++ring) {
    ASSERT_TRUE(send_frame(pair.link(0).outgoing(ring), make_payload(0, 0, 900)));
    pair.link(0).outgoing(ring).post();
  }
  ASSERT_TRUE(world.settle().ok()) << world.report();
  EXPECT_EQ(pair.side(0).failures, 1);
  EXPECT_EQ(pair.side(0).cause.code(), Code::peer_lost);
}

constexpr uint64_t kFlowFrames = 60;

// Frames that side 0 sends through its first ring.
struct Flow {
  uint64_t sent = 0;
  uint64_t received = 0;
};

// Sends as many as there is room for, and takes those that come.
void advance(World& world, SimPair& pair, Flow& flow) {
  transport::Outgoing& outgoing = pair.link(0).outgoing(0);
  while (flow.sent < kFlowFrames && send_frame(outgoing, make_payload(0, flow.sent, 700)))
    ++flow.sent;
  outgoing.post();
  ASSERT_TRUE(world.settle().ok()) << world.report();
  transport::Incoming& incoming = pair.link(1).incoming(0);
  FrameView view;
  while (incoming.next(view) == Next::frame) {
    EXPECT_TRUE(is_payload(view, make_payload(0, flow.received++, 700)));
    incoming.release(view.token);
  }
}

// A piece, a notification or a read notification cuts it.
TEST(SimTransport, what_a_cut_connection_has_lost_comes_over_the_next_one_once) {
  for (const uint32_t from : {0u, 1u}) {
    for (uint32_t deliveries = 0; deliveries < (from == 0 ? 12u : 6u); ++deliveries) {
      World world(deliveries + 1);
      SimPair pair(world, kSmall, kSmall);
      pair.faults().cut(from, 1 - from, SimFaults::Wire::data, deliveries);
      Flow flow;
      while (flow.received < kFlowFrames) {
        ASSERT_NO_FATAL_FAILURE(advance(world, pair, flow));
        if (pair.side(0).failures != 0) {
          EXPECT_EQ(pair.side(1).failures, 1);
          pair.side(0).failures = 0;
          pair.mend();
        }
      }
      EXPECT_EQ(pair.faults().cut_count(), 1u) << deliveries << " from " << from;
      FrameView none;
      EXPECT_EQ(pair.link(1).incoming(0).next(none), Next::nothing);
    }
  }
}

// A piece, a notification, a read notification or a sign of life is the first that does not arrive.
TEST(SimTransport, what_has_vanished_comes_over_the_next_connection_once_and_silence_shows) {
  for (const uint32_t from : {0u, 1u}) {
    for (uint32_t deliveries = 0; deliveries < (from == 0 ? 12u : 6u); ++deliveries) {
      World world(deliveries + 1);
      SimPair pair(world, kSmall, kSmall);
      pair.faults().darken(from, 1 - from, deliveries);
      Flow flow;
      uint32_t silences = 0;
      const auto shows_nothing = [&](uint32_t side) {
        return pair.link(side).take_pulse() == transport::Pulse::none;
      };
      for (uint32_t i : {0u, 1u}) (void)shows_nothing(i);
      while (flow.received < kFlowFrames || silences == 0) {
        ASSERT_NO_FATAL_FAILURE(advance(world, pair, flow));
        const bool is_silent[] = {shows_nothing(0), shows_nothing(1)};
        if (is_silent[0] || is_silent[1]) {
          ++silences;
          pair.mend();
          for (uint32_t i : {0u, 1u}) (void)shows_nothing(i);
        }
      }
      EXPECT_EQ(silences, 1u) << deliveries << " from " << from;
      EXPECT_EQ(pair.side(0).failures + pair.side(1).failures, 0) << "nobody is told";
    }
  }
}

TEST(SimTransport, events_under_way_survive_the_end_of_both_ends) {
  World world(1);
  {
    SimPair pair(world, kSmall, kSmall);
    ASSERT_TRUE(send_frame(pair.link(0).outgoing(0), make_payload(0, 0, 900)));
    pair.link(0).outgoing(0).post();
  }
  EXPECT_TRUE(world.settle().ok()) << world.report();
}

// Every byte of a set-up message comes from outside.
class SimSetupMessages : public ::testing::Test {
 protected:
  SimSetupMessages() {
    context_.outgoing = context_.incoming = kSmall;
    context_.peer_name = "node 1 (b)";
    context_.workers = side_.ends;
    context_.ready_group = side_.ready_group;
    context_.send = [this](std::span<const std::byte> m) { sent_.assign(m.begin(), m.end()); };
    setup_ = transport_.begin(context_);
  }

  World world_{1};
  SimFabric fabric_{world_};
  SimTransport transport_{fabric_, 0};
  SimPair::Side side_{1};
  transport::LinkContext context_;
  std::vector<std::byte> sent_;
  std::unique_ptr<transport::LinkSetup> setup_;
};

TEST_F(SimSetupMessages, refuses_what_is_not_a_peers_message) {
  ASSERT_TRUE(setup_->start().ok());
  const std::vector<std::byte> own = sent_;
  EXPECT_EQ(setup_->on_message(own).code(), Code::protocol_error) << "its own";
  EXPECT_EQ(setup_->on_message({}).code(), Code::protocol_error) << "empty";
  EXPECT_EQ(setup_->on_message(std::span(own).first(7)).code(), Code::protocol_error) << "short";
  // A changed byte is a wrong magic, an unknown key or another shape (or, in a reserved place, its
  // own key).
  for (size_t i = 0; i < own.size(); ++i) {
    std::vector<std::byte> changed = own;
    changed[i] ^= std::byte{0xff};
    EXPECT_EQ(setup_->on_message(changed).code(), Code::protocol_error) << "byte " << i;
    EXPECT_FALSE(setup_->ready());
  }
}

TEST_F(SimSetupMessages, refuses_a_message_before_the_start_and_a_second_one) {
  const std::vector<std::byte> nothing(48);
  EXPECT_EQ(setup_->on_message(nothing).code(), Code::protocol_error);
  ASSERT_TRUE(setup_->start().ok());
  auto other = transport_.begin(context_);
  ASSERT_TRUE(other->start().ok());
  ASSERT_TRUE(setup_->on_message(sent_).ok());
  EXPECT_EQ(setup_->on_message(sent_).code(), Code::protocol_error);
}

}  // namespace
}  // namespace faro::sim
