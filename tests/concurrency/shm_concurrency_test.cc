// The shared-memory data path between threads that sleep: with both ends in one mapping (the local
// link), which the thread sanitizer understands, and over two mappings of real segments.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "ring/doorbell.h"
#include "ring/ready_set.h"
#include "support/data_header.h"
#include "transport/shm/node_doorbells.h"
#include "transport/shm/segment.h"
#include "transport/shm/shm_datapath.h"

namespace faro::transport::shm {
namespace {

#if defined(FARO_SANITIZE_THREAD) || defined(FARO_SANITIZE_ADDRESS)
constexpr uint32_t kFrames = 20'000;
#else
constexpr uint32_t kFrames = 300'000;
#endif
constexpr base::Nanoseconds kNever = 20'000'000'000;
constexpr uint32_t kRing = 4096;

struct Node {
  Node() : doorbells(NodeDoorbells::make(1).value()) { end[0] = {&ready, &doorbells.line(0)}; }

  ring::ReadySet ready{2};
  NodeDoorbells doorbells;
  WorkerEnd end[1];
};

/// One worker of node 0 that sends to one of node 1.
struct Lane {
  Node nodes[2];
  std::unique_ptr<DataLink> links[2];

  /// Maps one segment per direction, once or twice.
  explicit Lane(bool one_mapping) {
    std::shared_ptr<Segment> made[2];
    std::shared_ptr<Segment> mapped[2];
    for (int side = 0; side < 2; ++side) {
      base::UniqueFd fd;
      made[side] = Segment::make_shared({1, 1, 1, kRing}, "test", fd).value();
      mapped[side] =
          one_mapping ? made[side] : Segment::map_peer(fd.get(), {1, 1, 1, kRing}, "test").value();
    }
    for (int side = 0; side < 2; ++side) {
      ShmLink::Parts parts;
      parts.incoming = made[side];
      parts.outgoing = mapped[1 - side];
      parts.peer_doorbells = {&nodes[1 - side].doorbells.line(0)};
      links[side] = std::make_unique<ShmLink>(std::move(parts));
      links[side]->attach_ready(*nodes[side].end[0].ready, 0, 0);
    }
  }
};

/// Sleeps unless `look` finds something between arming and sleeping; false if nobody woke it.
template <typename Look>
bool sleep_unless(ring::DoorbellLine& line, Look&& look) {
  ring::Doorbell doorbell(&line);
  doorbell.arm();
  if (look()) {
    doorbell.disarm();
    return true;
  }
  const base::Nanoseconds before = base::SystemClock::instance().now_ns();
  doorbell.sleep(kNever);
  return base::SystemClock::instance().now_ns() - before < kNever;
}

bool send(Outgoing& out, uint32_t number, uint32_t length) {
  const Claim claim = out.claim(length, length);
  if (claim.bytes == 0) return false;
  std::memset(claim.data, static_cast<int>(number), length);
  test::put_data_header(claim.data, length, number);
  out.commit(length);
  return true;
}

class ShmBetweenThreads : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Mappings, ShmBetweenThreads, testing::Bool(), [](const auto& one) {
  return one.param ? "one_mapping" : "two_mappings";
});

// The sender sleeps for space, the receiver for frames; with a ring of four frames they do so all
// the time.
TEST_P(ShmBetweenThreads,
       a_sender_that_sleeps_for_space_and_a_receiver_for_frames_never_miss_each_other) {
  Lane lane(GetParam());
  std::atomic<bool> lost{false};
  std::thread sender([&] {
    Outgoing& out = lane.links[0]->outgoing(0);
    uint64_t random = 7;
    for (uint32_t i = 1; i <= kFrames && !lost.load(); ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const uint32_t length = 17 + static_cast<uint32_t>((random >> 33) % (kRing / 4 - 16));
      while (!send(out, i, length) && !lost.load()) {
        out.post();
        bool sent = false;
        if (!sleep_unless(lane.nodes[0].doorbells.line(0),
                          [&] { return sent = send(out, i, length); }))
          lost.store(true);
        if (sent) break;
      }
    }
    out.post();
  });
  Incoming& in = lane.links[1]->incoming(0);
  ring::ReadySet& ready = lane.nodes[1].ready;
  uint32_t expected = 1;
  while (expected <= kFrames && !lost.load()) {
    bool any = false;
    ready.take([&](uint32_t ring) {
      any = true;
      ASSERT_EQ(ring, 0u);
      FrameView view;
      while (in.next(view) == Next::frame) {
        ASSERT_EQ(view.header.row_count, expected);
        for (uint32_t at = 0; at < view.payload_bytes(); at += 5)
          ASSERT_EQ(view.payload[at], static_cast<std::byte>(expected)) << "frame " << expected;
        in.release(view.token);
        ++expected;
      }
    });
    if (testing::Test::HasFatalFailure()) break;
    if (any || expected > kFrames) continue;
    in.flush_releases();
    if (!sleep_unless(lane.nodes[1].doorbells.line(0), [&] { return ready.any(); }))
      lost.store(true);
  }
  if (expected <= kFrames) lost.store(true);
  sender.join();
  EXPECT_FALSE(lost.load()) << "a wake-up was lost, or a frame";
  EXPECT_EQ(expected, kFrames + 1);
}

TEST(ShmWakeUps, a_worker_that_sleeps_for_rows_is_not_woken_by_read_positions) {
  Lane lane(true);
  Outgoing& out = lane.links[0]->outgoing(0);
  Incoming& in = lane.links[1]->incoming(0);
  ASSERT_TRUE(send(out, 1, 1000));
  out.post();
  ring::Doorbell sleeper(&lane.nodes[0].doorbells.line(0));
  sleeper.arm();
  FrameView view;
  ASSERT_EQ(in.next(view), Next::frame);
  in.release(view.token);
  EXPECT_EQ(in.counters().read_notifications.load(), 1u);
  EXPECT_EQ(sleeper.line().sleeping.load(), 1u);
}

TEST(ShmWakeUps, a_worker_that_found_no_space_once_and_then_some_is_not_woken_any_more) {
  Lane lane(true);
  Outgoing& out = lane.links[0]->outgoing(0);
  Incoming& in = lane.links[1]->incoming(0);
  uint32_t sent = 0;
  while (send(out, ++sent, 1024)) continue;
  out.post();
  ring::Doorbell sleeper(&lane.nodes[0].doorbells.line(0));
  sleeper.arm();
  FrameView view;
  while (in.next(view) == Next::frame) in.release(view.token);
  EXPECT_EQ(sleeper.line().sleeping.load(), 0u) << "it waited for space";
  ASSERT_TRUE(send(out, sent, 1024));
  out.post();
  sleeper.arm();
  while (in.next(view) == Next::frame) in.release(view.token);
  EXPECT_EQ(sleeper.line().sleeping.load(), 1u) << "it has space";
}

TEST(ShmStop, beside_both_ends_at_work_is_safe_and_ends_their_traffic) {
  for (int round = 0; round < 20; ++round) {
    Lane lane(true);
    std::atomic<bool> end{false};
    std::atomic<uint32_t> received{0};
    std::thread sender([&] {
      Outgoing& out = lane.links[0]->outgoing(0);
      while (!end.load()) {
        if (!send(out, 1, 100)) std::this_thread::yield();
        out.post();
      }
    });
    std::thread receiver([&] {
      Incoming& in = lane.links[1]->incoming(0);
      FrameView view;
      while (!end.load()) {
        if (in.next(view) != Next::frame) {
          std::this_thread::yield();
          continue;
        }
        in.release(view.token);
        received.fetch_add(1);
      }
    });
    while (received.load() < 100) std::this_thread::yield();
    for (auto& link : lane.links) {
      link->stop();
      link->stop();
    }
    FrameView view;
    end.store(true);
    sender.join();
    receiver.join();
    EXPECT_EQ(lane.links[1]->incoming(0).next(view), Next::nothing);
  }
}

}  // namespace
}  // namespace faro::transport::shm
