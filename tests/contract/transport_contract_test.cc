// What every transport promises (transport/transport.h), the same cases over each of them.
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

#include "contract/busy_workers.h"
#include "contract/frames.h"
#include "contract/transport_pair.h"
#include "ring/doorbell.h"

namespace faro::test {

static std::vector<TransportUnderTest>& registry() {
  static std::vector<TransportUnderTest> transports;
  return transports;
}
bool add_transport(TransportUnderTest transport) {
  registry().push_back(std::move(transport));
  return true;
}
const std::vector<TransportUnderTest>& transports_under_test() { return registry(); }

namespace {

using ring::Next;
using transport::FrameView;
using transport::Incoming;
using transport::Outgoing;

class TransportContract : public testing::TestWithParam<TransportUnderTest> {
 protected:
  void SetUp() override {
    if (!GetParam().unavailable_because) return;
    const std::string why = GetParam().unavailable_because();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  void open(const PairShape& shape) {
    shape_ = shape;
    Result<std::unique_ptr<TransportPair>> opened = GetParam().open(shape);
    ASSERT_TRUE(is_ok(opened));
    pair_ = std::move(*opened);
  }
  void TearDown() override {
    if (pair_ == nullptr || failure_expected_) return;
    for (int side = 0; side < 2; ++side) {
      EXPECT_EQ(pair_->failures(side), 0)
          << "side " << side << ": " << pair_->failure(side).to_string();
    }
  }

  static uint64_t many_frames() {
#if defined(FARO_SANITIZE_THREAD) || defined(FARO_SANITIZE_ADDRESS)
    return GetParam().many_frames / 20;
#else
    return GetParam().many_frames;
#endif
  }

  Outgoing& outgoing(uint32_t ring = 0) { return pair_->link(0).outgoing(ring); }
  Incoming& incoming(uint32_t ring = 0) { return pair_->link(1).incoming(ring); }

  /// Lets network work go on, as while the workers wait, until `done`; false if that does not come
  /// about in kLimit of this thread's processor time: how busy the machine is does not matter. Yields
  /// rarely: on a busy machine each time may take a slice of somebody else.
  template <typename Done>
  bool pump_until(Done&& done) {
    constexpr uint32_t kIdleRoundsPerYield = 16;
    const base::Nanoseconds deadline = processor_time() + kLimit;
    for (uint32_t idle_rounds = 0; !done();) {
      flush();
      if (pair_->pump()) continue;
      if (++idle_rounds % kIdleRoundsPerYield != 0) continue;
      if (processor_time() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  static base::Nanoseconds processor_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<base::Nanoseconds>(time.tv_sec) * 1'000'000'000 +
           static_cast<base::Nanoseconds>(time.tv_nsec);
  }

  /// The next frame of a ring, once it is there.
  Next receive(Incoming& from, FrameView& view) {
    Next next = Next::nothing;
    pump_until([&] { return (next = from.next(view)) != Next::nothing; });
    return next;
  }

  /// Lets network work go on until nothing more happens for a while.
  void settle() {
    flush();
    for (int idle = 0; idle < 50;) {
      if (pair_->pump()) {
        idle = 0;
      } else {
        ++idle;
        std::this_thread::yield();
      }
    }
  }

  void flush() {
    for (int side = 0; side < 2; ++side) pair_->flush(side);
  }

  /// Fills ring 0 with frames of `sequence`; returns their number.
  uint64_t fill(FrameSequence& sequence) {
    const uint64_t before = sequence.count();
    while (sequence.try_send(outgoing())) {
    }
    outgoing().post();
    return sequence.count() - before;
  }

  /// Receives that many frames of ring 0 and checks them; their tokens.
  std::vector<uint32_t> take(FrameSequence& sequence, uint64_t count) {
    std::vector<uint32_t> tokens;
    for (uint64_t i = 0; i < count; ++i) {
      FrameView view;
      const Next next = receive(incoming(), view);
      EXPECT_EQ(next, Next::frame) << "frame " << i << " of " << count;
      if (next != Next::frame) break;
      EXPECT_EQ(sequence.check(view), "");
      tokens.push_back(view.token);
    }
    return tokens;
  }

  /// Frames of random sizes, everything in one thread. Meanwhile the link is mended, `mends` times.
  void exchange_at_random(uint64_t frames, uint32_t mends = 0) {
    open(PairShape::symmetric(1, 2, 8192));
    const uint32_t ring_count = shape_.forth.ring_count();
    std::vector<FrameSequence> sent;
    std::vector<FrameSequence> received;
    std::vector<std::deque<uint32_t>> held(ring_count);
    for (uint32_t r = 0; r < ring_count; ++r) {
      sent.emplace_back(r, 2048);
      received.emplace_back(r, 2048);
    }
    const uint64_t per_ring = frames / ring_count;
    uint64_t chance = 13;
    const auto one_round = [&] {
      bool all = true;
      for (uint32_t r = 0; r < ring_count; ++r) {
        chance = mix(chance);
        for (uint64_t n = chance % 9; n > 0 && sent[r].count() < per_ring; --n) {
          if (!sent[r].try_send(outgoing(r))) break;
        }
        if (chance & 0x100 || sent[r].count() == per_ring) outgoing(r).post();
        FrameView view;
        for (uint64_t n = (chance >> 16) % 9; n > 0; --n) {
          if (incoming(r).next(view) != Next::frame) break;
          const std::string wrong = received[r].check(view);
          EXPECT_EQ(wrong, "");
          if (!wrong.empty()) return true;
          held[r].push_back(view.token);
        }
        // Some newest first, the rest oldest first.
        while (held[r].size() > (chance >> 24) % 4) {
          if ((chance >> 32) % 2 == 0) {
            incoming(r).release(held[r].back());
            held[r].pop_back();
          } else {
            incoming(r).release(held[r].front());
            held[r].pop_front();
          }
          chance = mix(chance);
        }
        all &= received[r].count() == per_ring;
      }
      return all;
    };
    uint32_t mended = 0;
    EXPECT_TRUE(pump_until([&] {
      if (mended < mends && received[0].count() > per_ring * mended / mends) {
        EXPECT_TRUE(is_ok(pair_->mend())) << "mend " << mended;
        ++mended;
      }
      return one_round();
    }));
    EXPECT_EQ(mended, mends);
    for (uint32_t r = 0; r < ring_count; ++r) EXPECT_EQ(received[r].count(), per_ring);
  }

  /// Whether its links can be mended. From now on breaks are no failures.
  bool mends() {
    failure_expected_ = true;
    open(PairShape::symmetric(1, 1, 4096));
    return pair_ != nullptr && pair_->link(0).capabilities().mends != 0;
  }
  void expect_only_breaks() {
    for (int side = 0; side < 2; ++side) {
      if (pair_->failures(side) == 0) continue;
      EXPECT_EQ(pair_->failure(side).code(), Code::peer_lost) << pair_->failure(side).to_string();
    }
  }

  PairShape shape_;
  std::unique_ptr<TransportPair> pair_;
  bool failure_expected_ = false;
};

INSTANTIATE_TEST_SUITE_P(Each, TransportContract, testing::ValuesIn(transports_under_test()),
                         [](const auto& instance) { return instance.param.name; });

constexpr uint32_t kRing = 4096;
const PairShape kOneRing = PairShape::symmetric(1, 1, kRing);

TEST_P(TransportContract, a_new_link_has_nothing_to_read_and_a_whole_ring_to_write) {
  open(kOneRing);
  FrameView view;
  EXPECT_EQ(incoming().next(view), Next::nothing);
  EXPECT_EQ(incoming().unreleased_bytes(), 0u);
  EXPECT_EQ(outgoing().pending_bytes(), 0u);
  EXPECT_EQ(outgoing().frame_limit(), kRing / 4);
  EXPECT_GE(outgoing().claim(kRing / 4, kRing / 4).bytes, kRing / 4);
  EXPECT_TRUE(GetParam().name.starts_with(pair_->link(0).capabilities().name));
}

TEST_P(TransportContract, a_frame_arrives_only_when_it_is_posted) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  auto [sent, received] = FrameSequences{{1, kRing / 4}};
  ASSERT_TRUE(sent.try_send(outgoing()));
  EXPECT_GT(outgoing().pending_bytes(), 0u);
  settle();
  FrameView view;
  EXPECT_EQ(incoming().next(view), Next::nothing);
  outgoing().post();
  EXPECT_EQ(outgoing().pending_bytes(), 0u);
  for (const uint32_t token : take(received, 1)) incoming().release(token);
}

TEST_P(TransportContract, a_post_that_may_wait_arrives_when_its_worker_waits_at_the_latest) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(PairShape::symmetric(1, 2, kRing));
  auto [sent, received] = FrameSequences{{18, 64}};
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post_soon();
  EXPECT_EQ(outgoing().pending_bytes(), 0u);
  EXPECT_EQ(outgoing().counters().transfers.load(), 1u);
  for (const uint32_t token : take(received, 1))
    incoming().release(token);  // lets both workers wait
  // Or with something urgent to the same node, without anyone waiting.
  FrameSequence urgent(19, 64);
  ASSERT_TRUE(sent.try_send(outgoing()));
  ASSERT_TRUE(urgent.try_send(outgoing(1)));
  outgoing().post_soon();
  outgoing(1).post();
  FrameView view;
  const base::Nanoseconds deadline = base::SystemClock::instance().now_ns() + kLimit;
  Next next = Next::nothing;
  while (next == Next::nothing && base::SystemClock::instance().now_ns() < deadline) {
    pair_->pump();
    next = incoming().next(view);
  }
  ASSERT_EQ(next, Next::frame);
  EXPECT_EQ(received.check(view), "");
}

TEST_P(TransportContract, frames_of_every_size_arrive_whole_and_in_order) {
  open(kOneRing);
  auto [sent, received] = FrameSequences{{2, kRing / 4}};
  for (uint32_t length = FrameSequence::kLeast; length <= kRing / 4; ++length) {
    sent.set_length(length);
    received.set_length(length);
    // The claim may have to wait for the read position of an earlier frame.
    ASSERT_TRUE(pump_until([&] { return sent.try_send(outgoing()); })) << "length " << length;
    outgoing().post();
    for (const uint32_t token : take(received, 1)) incoming().release(token);
    ASSERT_EQ(received.count(), sent.count()) << "length " << length;
  }
}

TEST_P(TransportContract, signs_of_life_go_along_with_frames) {
  open(kOneRing);
  auto [sent, received] = FrameSequences{{3, kRing / 8}};
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(pump_until([&] { return sent.try_send(outgoing()); })) << i;
    for (const int side : {0, 1}) (void)pair_->link(side).take_pulse();
    outgoing().post();
    for (const int side : {0, 1}) (void)pair_->link(side).take_pulse();
    for (const uint32_t token : take(received, 1)) incoming().release(token);
    ASSERT_EQ(received.count(), sent.count()) << i;
  }
  for (const int side : {0, 1}) EXPECT_EQ(pair_->failures(side), 0);
}

TEST_P(TransportContract, frames_wrap_around_the_end_of_the_ring_with_pads) {
  open(kOneRing);
  // 960 bytes do not divide 4096: each round ends at another offset.
  auto [sent, received] = FrameSequences{{3, kRing / 4, 960 - 7}};
  for (int round = 0; round < 200; ++round) {
    uint64_t count = 0;
    ASSERT_TRUE(pump_until([&] { return (count += fill(sent)) > 0; })) << "round " << round;
    for (const uint32_t token : take(received, count)) incoming().release(token);
    ASSERT_EQ(received.count(), sent.count());
  }
}

TEST_P(TransportContract, a_full_ring_takes_no_frame_until_the_receiver_releases) {
  open(kOneRing);
  auto [sent, received] = FrameSequences{{4, kRing / 4, kRing / 4}};
  ASSERT_EQ(fill(sent), 4u);
  EXPECT_EQ(outgoing().claim(64, 64).bytes, 0u);
  const std::vector<uint32_t> tokens = take(received, 4);
  EXPECT_EQ(incoming().unreleased_bytes(), kRing);
  settle();
  EXPECT_EQ(outgoing().claim(64, 64).bytes, 0u) << "taken, but not released";
  for (const uint32_t token : tokens) incoming().release(token);
  EXPECT_TRUE(pump_until([&] { return outgoing().claim(kRing / 4, kRing / 4).bytes != 0; }));
}

// Nobody releases them.
TEST_P(TransportContract, frames_that_may_be_skipped_give_their_space_back) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  constexpr uint32_t kLength = kRing / 4;
  for (int i = 0; i < 50; ++i) {
    transport::Claim claim;
    ASSERT_TRUE(pump_until([&] {
      FrameView view;
      EXPECT_EQ(incoming().next(view), Next::nothing);
      return (claim = outgoing().claim(kLength, kLength)).bytes != 0;
    })) << i;
    const wire::FrameHeader header{kLength, wire::FrameKind{200}, wire::kMaySkipFrame, 1, 2, 0};
    std::memcpy(claim.data, &header, sizeof header);
    outgoing().commit(kLength);
    outgoing().post();
  }
  EXPECT_EQ(incoming().counters().frames_received.load(), 0u);
  auto [sent, received] = FrameSequences{{6, kRing / 4}};
  ASSERT_TRUE(pump_until([&] {
    FrameView view;
    EXPECT_EQ(incoming().next(view), Next::nothing);
    return sent.try_send(outgoing());
  }));
  outgoing().post();
  for (const uint32_t token : take(received, 1)) incoming().release(token);
  EXPECT_EQ(received.count(), 1u);
}

TEST_P(TransportContract, space_comes_back_in_order_whatever_the_order_of_release) {
  open(kOneRing);
  auto [sent, received] = FrameSequences{{5, kRing / 4, kRing / 4}};
  ASSERT_EQ(fill(sent), 4u);
  const std::vector<uint32_t> tokens = take(received, 4);
  ASSERT_EQ(tokens.size(), 4u);
  for (const int last : {3, 1, 2}) {
    incoming().release(tokens[static_cast<size_t>(last)]);
    incoming().flush_releases();
    settle();
    EXPECT_EQ(outgoing().claim(64, 64).bytes, 0u) << "the first frame is still held";
  }
  incoming().release(tokens[0]);
  ASSERT_TRUE(pump_until([&] { return outgoing().claim(kRing / 4, kRing / 4).bytes != 0; }));
  EXPECT_EQ(fill(sent), 4u);
  for (const uint32_t token : take(received, 4)) incoming().release(token);
}

TEST_P(TransportContract, flushing_tells_of_every_release_however_small) {
  open(kOneRing);
  auto [sent, received] = FrameSequences{{6, 64, 64}};
  ASSERT_EQ(fill(sent), kRing / 64);
  const std::vector<uint32_t> tokens = take(received, kRing / 64);
  ASSERT_EQ(tokens.size(), kRing / 64);
  incoming().release(tokens[0]);
  incoming().flush_releases();
  ASSERT_TRUE(pump_until([&] { return outgoing().claim(64, 64).bytes != 0; }));
  EXPECT_EQ(fill(sent), 1u);
  for (uint32_t i = 1; i < tokens.size(); ++i) incoming().release(tokens[i]);
  for (const uint32_t token : take(received, 1)) incoming().release(token);
}

TEST_P(TransportContract, read_positions_are_told_a_quarter_ring_at_a_time) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  auto [sent, received] = FrameSequences{{7, 64, 64}};
  ASSERT_EQ(fill(sent), kRing / 64);
  for (const uint32_t token : take(received, kRing / 64)) incoming().release(token);
  EXPECT_EQ(incoming().counters().read_notifications.load(), 4u);
}

TEST_P(TransportContract, a_ring_without_frames_left_tells_its_read_position_at_once) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  auto [sent, received] = FrameSequences{{8, 64}};
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post();
  for (const uint32_t token : take(received, 1)) incoming().release(token);
  EXPECT_EQ(incoming().counters().read_notifications.load(), 1u);
  incoming().flush_releases();
  EXPECT_EQ(incoming().counters().read_notifications.load(), 1u) << "nothing new to tell";
}

TEST_P(TransportContract, more_unreleased_frames_than_are_tracked_wait_in_the_ring) {
  open(PairShape::symmetric(1, 1, 16384));
  auto [sent, received] = FrameSequences{{9, 64, 64}};
  const uint64_t count = fill(sent);
  ASSERT_EQ(count, 256u);
  const std::vector<uint32_t> tokens = take(received, ring::Consumer::kTracked);
  FrameView view;
  EXPECT_EQ(incoming().next(view), Next::full);
  for (const uint32_t token : tokens) incoming().release(token);
  for (uint64_t left = count - tokens.size(); left > 0; --left) {
    for (const uint32_t token : take(received, 1)) incoming().release(token);
  }
  EXPECT_EQ(incoming().next(view), Next::nothing);
}

TEST_P(TransportContract, many_rings_in_both_directions_do_not_mix) {
  // More rings per worker than a ready word has bits; workers differ.
  const ring::Layout forth{3, 2, 30, kRing};
  const ring::Layout back{2, 3, 30, kRing};
  open({forth, back});
  struct Lane {
    Outgoing* out;
    Incoming* in;
    FrameSequence sent;
    FrameSequence received;
  };
  std::vector<Lane> lanes;
  for (int from = 0; from < 2; ++from) {
    for (uint32_t r = 0; r < forth.ring_count(); ++r) {
      const uint64_t seed = static_cast<uint64_t>(from) * 1000 + r;
      lanes.push_back({&pair_->link(from).outgoing(r), &pair_->link(1 - from).incoming(r),
                       FrameSequence(seed, kRing / 4), FrameSequence(seed, kRing / 4)});
    }
  }
  constexpr uint64_t kFramesPerRing = 50;
  uint64_t chance = 1;
  const auto all_received = [&] {
    bool all = true;
    // As much network work as there are rings: the simulation does one thing at a time.
    for (size_t n = 0; n < lanes.size() && pair_->pump(); ++n) continue;
    for (Lane& lane : lanes) {
      chance = mix(chance);
      if (lane.sent.count() < kFramesPerRing && chance % 3 != 0) lane.sent.try_send(*lane.out);
      if (chance % 5 != 0) lane.out->post();
      FrameView view;
      if (lane.in->next(view) == Next::frame) {
        EXPECT_EQ(lane.received.check(view), "");
        lane.in->release(view.token);
      }
      all &= lane.received.count() == kFramesPerRing;
    }
    return all;
  };
  EXPECT_TRUE(pump_until(all_received));
}

TEST_P(TransportContract, a_transfer_marks_its_ring_and_only_that_in_its_receivers_ready_set) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  const ring::Layout forth{2, 3, 2, kRing};
  const ring::Layout back{3, 2, 2, kRing};
  open({forth, back});
  for (uint32_t r = 0; r < forth.ring_count(); ++r) {
    FrameSequence sent(r, 64);
    ASSERT_TRUE(sent.try_send(outgoing(r)));
    outgoing(r).post();
    const uint32_t worker = forth.receiver_of(r);
    ASSERT_TRUE(pump_until([&] { return pair_->ready_set(1, worker).any(); })) << "ring " << r;
    std::vector<uint32_t> marked;
    for (uint32_t w = 0; w < forth.receiver_ends; ++w) {
      pair_->ready_set(1, w).take([&](uint32_t number) {
        EXPECT_EQ(w, worker);
        marked.push_back(number - pair_->first_ready(1, w));
      });
    }
    EXPECT_EQ(marked, std::vector<uint32_t>{forth.index_at_receiver(r)}) << "ring " << r;
  }
}

// Rings that end at nodes of 2 and 4 workers: any of these may take from them.
constexpr PairShape kToNodes{.forth = {2, 1, 2, kRing}, .back = {4, 1, 2, kRing}};
// And those of workers beside them.
constexpr PairShape kToBoth{.forth = {2, 5, 2, kRing}, .back = {4, 3, 2, kRing}};

TEST_P(TransportContract,
       a_transfer_to_a_node_marks_its_ring_there_and_wakes_one_worker_that_sleeps) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  if (!GetParam().no_nodes_because.empty()) GTEST_SKIP() << GetParam().no_nodes_because;
  open(kToNodes);
  std::vector<ring::Doorbell> doorbells;
  for (uint32_t w = 0; w < 4; ++w) doorbells.emplace_back(&pair_->doorbell(1, w));
  std::array<int, 4> woken{};
  for (uint32_t n = 0; n < 4 * kToNodes.forth.ring_count(); ++n) {
    const uint32_t r = n % kToNodes.forth.ring_count();
    // Worker 1 never sleeps.
    for (const uint32_t w : {0u, 2u, 3u}) doorbells[w].arm();
    FrameSequence sent(n, 64);
    ASSERT_TRUE(sent.try_send(outgoing(r)));
    outgoing(r).post();
    const auto is_woken = [&](uint32_t w) { return doorbells[w].line().sleeping.load() == 0; };
    ASSERT_TRUE(pump_until([&] { return is_woken(0) || is_woken(2) || is_woken(3); }));
    settle();
    EXPECT_EQ(is_woken(0) + is_woken(2) + is_woken(3), 1) << "frame " << n;
    for (uint32_t w = 0; w < 4; ++w) woken[w] += w != 1 && is_woken(w);
    std::vector<uint32_t> marked;
    pair_->ready_set(1, 0).take(
        [&](uint32_t number) { marked.push_back(number - pair_->first_ready(1, 0)); });
    EXPECT_EQ(marked, std::vector<uint32_t>{r});
  }
  for (const uint32_t w : {0u, 2u, 3u})
    EXPECT_GT(woken[w], 0) << "worker " << w << " is never rung";
}

TEST_P(TransportContract, a_transfer_to_a_node_marks_nothing_of_its_workers_nor_the_other_way) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  if (!GetParam().no_nodes_because.empty()) GTEST_SKIP() << GetParam().no_nodes_because;
  open(kToBoth);
  const ring::Layout& forth = kToBoth.forth;
  for (uint32_t r = 0; r < forth.ring_count(); ++r) {
    FrameSequence sent(r, 64);
    ASSERT_TRUE(sent.try_send(outgoing(r)));
    outgoing(r).post();
    const uint32_t to = forth.receiver_of(r);
    ASSERT_TRUE(pump_until([&] { return pair_->ready_set(1, to).any(); })) << "ring " << r;
    for (uint32_t end = 0; end < forth.receiver_ends; ++end) {
      std::vector<uint32_t> marked;
      pair_->ready_set(1, end).take([&](uint32_t number) { marked.push_back(number); });
      const std::vector<uint32_t> expected{pair_->first_ready(1, to) + forth.index_at_receiver(r)};
      EXPECT_EQ(marked, end == to ? expected : std::vector<uint32_t>()) << "ring " << r;
    }
  }
}

TEST_P(TransportContract, frames_to_nodes_arrive_both_ways_and_their_room_comes_back) {
  if (!GetParam().no_nodes_because.empty()) GTEST_SKIP() << GetParam().no_nodes_because;
  for (const PairShape& shape : {kToNodes, kToBoth}) {
    open(shape);
    for (const int from : {0, 1}) {
      const ring::Layout& rings = from == 0 ? shape.forth : shape.back;
      for (uint32_t r = 0; r < rings.ring_count(); ++r) {
        SCOPED_TRACE(r);
        transport::Outgoing& out = pair_->link(from).outgoing(r);
        transport::Incoming& in = pair_->link(1 - from).incoming(r);
        FrameSequence sent(r, 512);
        FrameSequence received(r, 512);
        while (received.count() < 40) {  // several times what a ring holds
          ASSERT_TRUE(pump_until([&] { return sent.try_send(out); }));
          out.post();
          FrameView view;
          ASSERT_EQ(receive(in, view), Next::frame);
          EXPECT_EQ(received.check(view), "");
          in.release(view.token);
          in.flush_releases();
        }
      }
    }
  }
}

TEST_P(TransportContract, a_sleeping_receiver_is_woken_by_frames) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  ring::Doorbell doorbell(&pair_->doorbell(1, 0));
  doorbell.arm();
  settle();
  EXPECT_EQ(doorbell.line().sleeping.load(), 1u) << "woken by nothing";
  FrameSequence sent(10, 64);
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post();
  EXPECT_TRUE(pump_until([&] { return doorbell.line().sleeping.load() == 0; }));
  EXPECT_TRUE(pair_->ready_set(1, 0).any()) << "woken before it could see why";
}

TEST_P(TransportContract,
       a_sleeping_receiver_is_not_woken_by_quiet_frames_before_a_post_that_is_not) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  auto [sent, received] = FrameSequences{{20, 64}};
  ring::Doorbell doorbell(&pair_->doorbell(1, 0));
  doorbell.arm();
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post_quietly();
  settle();
  EXPECT_EQ(doorbell.line().sleeping.load(), 1u) << "woken by a quiet post";
  outgoing().post();  // of nothing else
  EXPECT_TRUE(pump_until([&] { return doorbell.line().sleeping.load() == 0; }));
  doorbell.arm();
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post_quietly();
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post();
  EXPECT_TRUE(pump_until([&] { return doorbell.line().sleeping.load() == 0; }));
  for (const uint32_t token : take(received, 3)) incoming().release(token);
  EXPECT_EQ(received.count(), 3u);
}

TEST_P(TransportContract, a_receiver_that_sleeps_for_all_but_frames_is_not_woken_by_them) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  auto [sent, received] = FrameSequences{{21, 64}};
  ring::Doorbell doorbell(&pair_->doorbell(1, 0));
  doorbell.arm(ring::WokenFor::all_but_frames);
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post();
  for (const uint32_t token : take(received, 1)) incoming().release(token);
  settle();
  EXPECT_NE(doorbell.line().sleeping.load(), 0u);
  // What it waits for instead.
  FrameSequence back(22, kRing / 4, kRing / 4);
  while (back.try_send(pair_->link(1).outgoing(0))) {
  }
  pair_->link(1).outgoing(0).post();
  FrameView view;
  while (receive(pair_->link(0).incoming(0), view) == Next::frame) {
    pair_->link(0).incoming(0).release(view.token);
    if (pair_->link(0).incoming(0).counters().frames_received.load() == back.count()) break;
  }
  pair_->link(0).incoming(0).flush_releases();
  EXPECT_TRUE(pump_until([&] { return doorbell.line().sleeping.load() == 0; }));
}

TEST_P(TransportContract, a_sender_that_forgoes_room_is_not_woken_for_it_until_it_asks_again) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  if (const std::string& why = GetParam().rings_for_all_room_because; !why.empty())
    GTEST_SKIP() << why;
  open(kOneRing);
  auto [sent, received] = FrameSequences{{23, kRing / 4, kRing / 4}};
  ASSERT_EQ(fill(sent), 4u);
  std::vector<uint32_t> tokens = take(received, 4);
  ring::Doorbell doorbell(&pair_->doorbell(0, 0));
  EXPECT_EQ(outgoing().claim(64, 64).bytes, 0u);
  outgoing().forgo_room();
  doorbell.arm();
  for (const uint32_t token : tokens) incoming().release(token);
  incoming().flush_releases();
  settle();
  EXPECT_EQ(doorbell.line().sleeping.load(), 1u) << "woken for room that it does not wait for";
  ASSERT_TRUE(pump_until([&] { return outgoing().claim(kRing / 4, kRing / 4).bytes != 0; }));
  ASSERT_EQ(fill(sent), 4u);
  EXPECT_EQ(outgoing().claim(64, 64).bytes, 0u);
  for (const uint32_t token : take(received, 4)) incoming().release(token);
  incoming().flush_releases();
  EXPECT_TRUE(pump_until([&] { return doorbell.line().sleeping.load() == 0; }));
}

TEST_P(TransportContract, a_sender_that_sleeps_for_space_is_woken_by_read_positions) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  auto [sent, received] = FrameSequences{{11, kRing / 4, kRing / 4}};
  ASSERT_EQ(fill(sent), 4u);
  const std::vector<uint32_t> tokens = take(received, 4);
  ring::Doorbell doorbell(&pair_->doorbell(0, 0));
  doorbell.arm();
  EXPECT_EQ(outgoing().claim(64, 64).bytes, 0u);  // looks once more
  for (const uint32_t token : tokens) incoming().release(token);
  incoming().flush_releases();
  EXPECT_TRUE(pump_until([&] { return doorbell.line().sleeping.load() == 0; }));
  EXPECT_NE(outgoing().claim(64, 64).bytes, 0u) << "woken before it could see why";
}

TEST_P(TransportContract, counters_count_what_happened) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  auto [sent, received] = FrameSequences{{12, 64, 100}};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post();
  outgoing().post();  // nothing to start
  for (const uint32_t token : take(received, 3)) {
    EXPECT_EQ(incoming().counters().unreleased_bytes.load(), incoming().unreleased_bytes());
    EXPECT_NE(incoming().unreleased_bytes(), 0u);
    incoming().release(token);
  }
  EXPECT_EQ(incoming().counters().unreleased_bytes.load(), 0u);
  EXPECT_EQ(outgoing().counters().frames_sent.load(), 3u);
  EXPECT_EQ(outgoing().counters().bytes_sent.load(), 3u * 128);
  EXPECT_EQ(outgoing().counters().transfers.load(), 1u);
  EXPECT_EQ(incoming().counters().frames_received.load(), 3u);
  EXPECT_EQ(incoming().counters().bytes_received.load(), 3u * 128);
}

TEST_P(TransportContract, many_frames_of_random_sizes_arrive_with_everything_in_one_thread) {
  exchange_at_random(many_frames());
}

TEST_P(TransportContract, many_frames_of_random_sizes_arrive_with_a_thread_per_worker) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  if (!GetParam().no_threads_because.empty()) GTEST_SKIP() << GetParam().no_threads_because;
  open(PairShape::symmetric(3, 2, 8192));
  run_busy_workers(*pair_, shape_, many_frames(), false);
}

TEST_P(TransportContract, many_frames_of_random_sizes_arrive_with_workers_that_read_the_network) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  if (!GetParam().no_threads_because.empty()) GTEST_SKIP() << GetParam().no_threads_because;
  open(PairShape::symmetric(3, 2, 8192));
  run_busy_workers(*pair_, shape_, many_frames(), true);
}

// What was posted, committed, taken, held and released stays so.
TEST_P(TransportContract, a_link_that_is_mended_goes_on_where_it_stopped) {
  if (!mends()) GTEST_SKIP() << "it does not mend";
  for (uint32_t length : {64u, 500u, 1000u}) {
    SCOPED_TRACE(length);
    open(kOneRing);
    auto [sent, received] = FrameSequences{{21, kRing / 4, length}};
    std::deque<uint32_t> held;
    for (int round = 0; round < 12; ++round) {
      if (round % 3 == 0) settle();
      if (round % 4 != 3) fill(sent);
      while (sent.try_send(outgoing())) {
      }
      if (round % 2 == 0) {
        const size_t before = held.size();
        for (const uint32_t token : take(received, 1)) held.push_back(token);
        EXPECT_EQ(held.size(), before + 1);
      }
      while (held.size() > 1) {
        incoming().release(held.front());
        held.pop_front();
      }
      const int times = round % 5 == 0 ? 2 : 1;
      for (int n = 0; n < times; ++n) ASSERT_TRUE(is_ok(pair_->mend())) << "round " << round;
    }
    outgoing().post();
    while (!held.empty()) {
      incoming().release(held.front());
      held.pop_front();
    }
    incoming().flush_releases();
    for (const uint32_t token : take(received, sent.count() - received.count()))
      incoming().release(token);
    settle();
    EXPECT_EQ(received.count(), sent.count());
    FrameView view;
    EXPECT_EQ(incoming().next(view), Next::nothing);
    EXPECT_TRUE(pump_until([&] { return outgoing().claim(kRing / 4, kRing / 4).bytes != 0; }));
    expect_only_breaks();
  }
}

TEST_P(TransportContract, many_frames_arrive_once_though_their_link_is_mended_all_the_time) {
  if (!mends()) GTEST_SKIP() << "it does not mend";
  exchange_at_random(many_frames() / 4, 20);
  expect_only_breaks();
}

TEST_P(TransportContract, many_frames_of_busy_workers_arrive_though_their_link_is_mended) {
  if (!GetParam().no_threads_because.empty()) GTEST_SKIP() << GetParam().no_threads_because;
  if (!mends()) GTEST_SKIP() << "it does not mend";
  for (const bool reads : {false, true}) {
    open(PairShape::symmetric(3, 2, 8192));
    run_busy_workers(*pair_, shape_, many_frames() / 8, reads, 5);
    expect_only_breaks();
  }
}

// Its worker polled, and then computes: the network thread is all that runs there.
TEST_P(TransportContract, a_frame_arrives_though_its_sender_never_looks_again) {
  if (!GetParam().no_threads_because.empty()) GTEST_SKIP() << GetParam().no_threads_because;
  open(PairShape::symmetric(1, 1, 8192));
  pair_->run_network_threads();
  auto [sent, received] = FrameSequences{{1, 64}};
  pair_->poll(0);
  for (int frame = 0; frame < 3; ++frame) {
    ASSERT_TRUE(sent.try_send(outgoing()));
    outgoing().post();
    FrameView view;
    Next next = Next::nothing;
    const base::Nanoseconds deadline = base::SystemClock::instance().now_ns() + kLimit;
    while ((next = incoming().next(view)) == Next::nothing) {
      ASSERT_LT(base::SystemClock::instance().now_ns(), deadline) << "frame " << frame;
      pair_->poll(1);
    }
    ASSERT_EQ(next, Next::frame);
    EXPECT_EQ(received.check(view), "");
    incoming().release(view.token);
  }
}

TEST_P(TransportContract, a_large_ring_carries_more_than_a_socket_takes_at_once) {
  constexpr uint32_t kLarge = 16 << 20;
  open(PairShape::symmetric(1, 1, kLarge));
  auto [sent, received] = FrameSequences{{14, kLarge / 4, kLarge / 4 - 100}};
  for (int round = 0; round < 3; ++round) {
    uint64_t count = 0;
    ASSERT_TRUE(pump_until([&] { return (count += fill(sent)) > 0; }));
    for (const uint32_t token : take(received, count)) incoming().release(token);
  }
  EXPECT_EQ(received.count(), sent.count());
}

TEST_P(TransportContract, after_stop_every_call_is_harmless) {
  open(kOneRing);
  auto [sent, received] = FrameSequences{{15, 512}};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post();
  const std::vector<uint32_t> tokens = take(received, 2);
  for (int twice = 0; twice < 2; ++twice) {
    pair_->link(0).stop();
    pair_->link(1).stop();
  }
  while (sent.try_send(outgoing())) outgoing().post();
  for (const uint32_t token : tokens) incoming().release(token);
  FrameView view;
  while (incoming().next(view) == Next::frame) incoming().release(view.token);
  incoming().flush_releases();
  settle();
  EXPECT_EQ(pair_->failures(0), 0);
  EXPECT_EQ(pair_->failures(1), 0);
}

TEST_P(TransportContract, after_stop_nothing_more_arrives) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  open(kOneRing);
  FrameSequence sent(16, 512);
  pair_->link(0).stop();
  pair_->link(1).stop();
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post();
  settle();
  FrameView view;
  EXPECT_EQ(incoming().next(view), Next::nothing);
}

TEST_P(TransportContract, a_peer_that_vanishes_fails_the_link_once) {
  if (!GetParam().no_loss_because.empty()) GTEST_SKIP() << GetParam().no_loss_because;
  open(kOneRing);
  failure_expected_ = true;
  auto [sent, received] = FrameSequences{{17, 512}};
  ASSERT_TRUE(sent.try_send(outgoing()));
  outgoing().post();
  take(received, 1);  // held to the end
  pair_->drop(1);
  ASSERT_TRUE(pump_until([&] { return pair_->failures(0) > 0; }));
  EXPECT_EQ(pair_->failure(0).code(), Code::peer_lost) << pair_->failure(0).to_string();
  while (sent.try_send(outgoing())) outgoing().post();
  settle();
  pair_->link(0).stop();
  EXPECT_EQ(pair_->failures(0), 1);
}

struct BadFrame {
  const char* what;
  wire::FrameHeader header;  // in a claimed space of 256 bytes, of which 256 are committed
};
constexpr BadFrame kBadFrames[] = {
    {"no frame at all", {}},
    {"shorter than its header", data_header(15)},
    {"beyond what was written", data_header(257)},
    {"2^31 bytes", data_header(1u << 31)},
    {"2^32 - 1 bytes", data_header(~0u)},
    {"an unknown kind", {256, static_cast<wire::FrameKind>(99), 0, 0, 1, 0}},
    {"unknown flags", {256, wire::FrameKind::data, 1, 0, 1, 0}},
    {"a pad in the middle", {256, wire::FrameKind::pad, 0, 0, 0, 0}},
};

TEST_P(TransportContract, a_peer_that_writes_nonsense_fails_the_link_once_with_protocol_error) {
  if (!GetParam().no_inside_because.empty()) GTEST_SKIP() << GetParam().no_inside_because;
  failure_expected_ = true;
  for (const BadFrame& bad : kBadFrames) {
    SCOPED_TRACE(bad.what);
    open(kOneRing);
    const transport::Claim claim = outgoing().claim(256, 256);
    ASSERT_GE(claim.bytes, 256u);
    std::memcpy(claim.data, &bad.header, sizeof bad.header);
    outgoing().commit(256);
    outgoing().post();
    FrameView view;
    EXPECT_EQ(receive(incoming(), view), Next::invalid);
    EXPECT_EQ(incoming().next(view), Next::invalid) << "and stays so";
    EXPECT_EQ(pair_->failures(1), 1);
    EXPECT_EQ(pair_->failure(1).code(), Code::protocol_error) << pair_->failure(1).to_string();
  }
}

}  // namespace
}  // namespace faro::test
