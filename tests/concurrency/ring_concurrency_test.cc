// Rings, ready sets and doorbells between threads. Payloads check themselves; a lost wake-up shows
// as a sleep that takes its whole (long) time.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "ring/doorbell.h"
#include "ring/ready_set.h"
#include "unit/ring_pair.h"

namespace faro::test {
namespace {

using ring::Doorbell;
using ring::DoorbellLine;
using ring::ReadySet;

#if defined(FARO_SANITIZE_THREAD) || defined(FARO_SANITIZE_ADDRESS)
constexpr uint32_t kSleeps = 10'000;
constexpr uint32_t kMarks = 100'000;
constexpr uint32_t kFrames = 20'000;
#else
constexpr uint32_t kSleeps = 100'000;
constexpr uint32_t kMarks = 1'000'000;
constexpr uint32_t kFrames = 50'000;
#endif

constexpr base::Nanoseconds kNever = 20'000'000'000;

/// Waits as a worker does; false if the sleep ended only because of its time limit.
bool wait_for_mark(ReadySet& ready, Doorbell& doorbell, uint32_t& sleeps) {
  for (;;) {
    if (ready.any()) break;
    doorbell.arm();
    if (ready.any()) {
      doorbell.disarm();
      break;
    }
    ++sleeps;
    const base::Nanoseconds before = base::SystemClock::instance().now_ns();
    doorbell.sleep(kNever);
    if (base::SystemClock::instance().now_ns() - before >= kNever) return false;
  }
  ready.take([](uint32_t) {});
  return true;
}

// Two workers that wake each other in turn, each asleep nearly always when the other publishes.
TEST(DoorbellProtocol, loses_no_wake_up_between_two_that_wake_each_other) {
  struct Side {
    Side() { ready.add_group(); }
    ReadySet ready{1};
    DoorbellLine line{};
  };
  Side sides[2];
  std::atomic<uint32_t> sleeps[2] = {0, 0};
  std::atomic<bool> lost{false};
  const auto play = [&](int own) {
    Doorbell doorbell(&sides[own].line);
    Side& other = sides[1 - own];
    uint32_t slept = 0;
    while (!lost.load() && sleeps[own].load() < kSleeps && sleeps[1 - own].load() < kSleeps) {
      if (own == 1 && !wait_for_mark(sides[own].ready, doorbell, slept)) lost.store(true);
      other.ready.mark(5);
      ring_doorbell(other.line);
      if (own == 0 && !wait_for_mark(sides[own].ready, doorbell, slept)) lost.store(true);
      sleeps[own].store(slept);
    }
    // The other may still wait for its turn.
    other.ready.mark(5);
    ring_doorbell(other.line);
  };
  std::thread second([&] { play(1); });
  play(0);
  second.join();
  EXPECT_FALSE(lost.load()) << "slept for its whole time";
  EXPECT_GE(std::max(sleeps[0].load(), sleeps[1].load()), kSleeps);
}

// Publishers that do not wait for the sleeper: every mark races with arm, look and sleep.
TEST(DoorbellProtocol, loses_no_wake_up_of_several_that_race) {
  constexpr uint32_t kPublishers = 3;
  ReadySet ready(1);
  ready.add_group();
  DoorbellLine line{};
  std::atomic<uint32_t> published[kPublishers] = {};
  std::atomic<uint32_t> seen[kPublishers] = {};
  std::vector<std::thread> publishers;
  for (uint32_t p = 0; p < kPublishers; ++p) {
    publishers.emplace_back([&, p] {
      for (uint32_t i = 1; i <= kMarks / 10; ++i) {
        published[p].store(i, std::memory_order_release);
        ready.mark(p);
        ring_doorbell(line);
        // Every so often let the sleeper catch up, so that it really sleeps.
        while (i % 16 == 0 && seen[p].load(std::memory_order_relaxed) < i)
          std::this_thread::yield();
      }
    });
  }
  Doorbell doorbell(&line);
  bool lost = false;
  const auto done = [&] {
    for (const auto& each : seen) {
      if (each.load(std::memory_order_relaxed) < kMarks / 10) return false;
    }
    return true;
  };
  while (!lost && !done()) {
    doorbell.arm();
    if (ready.any()) {
      doorbell.disarm();
    } else {
      const base::Nanoseconds before = base::SystemClock::instance().now_ns();
      doorbell.sleep(kNever);
      lost = base::SystemClock::instance().now_ns() - before >= kNever;
    }
    ready.take([&](uint32_t p) {
      seen[p].store(published[p].load(std::memory_order_acquire), std::memory_order_relaxed);
    });
  }
  for (uint32_t p = 0; p < kPublishers; ++p) {
    EXPECT_EQ(seen[p].load(), kMarks / 10);
    seen[p].store(~0u);  // nobody waits any longer if this failed
  }
  for (std::thread& publisher : publishers) publisher.join();
  EXPECT_FALSE(lost);
}

TEST(ReadySetBetweenThreads, shows_the_last_position_of_every_ring_that_was_marked) {
  constexpr uint32_t kWriters = 3;
  constexpr uint32_t kGroups = 4;
  constexpr uint32_t kRings = kGroups * ReadySet::kRingsPerGroup;
  ReadySet ready(kGroups);
  std::atomic<uint64_t> external{0};
  constexpr uint32_t external_group = kGroups - 1;
  ready.set_external(external_group, &external);
  std::vector<std::atomic<uint64_t>> positions(kRings);
  std::vector<uint64_t> seen(kRings);
  std::atomic<uint32_t> writing{kWriters};

  std::vector<std::thread> writers;
  for (uint32_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      uint64_t random = 0x9e3779b97f4a7c15u + w;
      for (uint32_t i = 0; i < kMarks; ++i) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        const uint32_t ring =
            static_cast<uint32_t>(random % (kRings / kWriters)) * kWriters + w;  // its own rings
        positions[ring].store(positions[ring].load(std::memory_order_relaxed) + 1,
                              std::memory_order_release);
        if (ring / 64 == external_group) {
          external.fetch_or(uint64_t{1} << (ring % 64), std::memory_order_seq_cst);
        } else {
          ready.mark(ring);
        }
      }
      writing.fetch_sub(1);
    });
  }
  const auto look = [&] {
    ready.take([&](uint32_t ring) {
      ASSERT_LT(ring, kRings);
      const uint64_t position = positions[ring].load(std::memory_order_acquire);
      ASSERT_GE(position, seen[ring]);
      seen[ring] = position;
    });
  };
  while (writing.load() != 0) look();
  look();
  for (std::thread& writer : writers) writer.join();
  for (uint32_t ring = 0; ring < kRings; ++ring)
    ASSERT_EQ(seen[ring], positions[ring].load()) << ring;
  EXPECT_FALSE(ready.any());
}

// One ring, both positions moved by their own sides, over 2^31 and 2^63.
struct Start {
  const char* name;
  wire::Position position;
};
void PrintTo(const Start& start, std::ostream* out) { *out << start.position; }

class RingBetweenThreads : public testing::TestWithParam<Start> {};
INSTANTIATE_TEST_SUITE_P(
    Starts, RingBetweenThreads,
    testing::Values(Start{"at_zero", 0},
                    Start{"below_2_to_31", (wire::Position{1} << 31) - (1 << 20)},
                    Start{"below_2_to_63", (wire::Position{1} << 63) - (1 << 20)}),
    [](const auto& start) { return std::string(start.param.name); });

TEST_P(RingBetweenThreads, carries_every_frame_whole_and_in_order) {
  constexpr uint32_t kRing = 4096;
  RingPair pair(kRing, GetParam().position);
  std::thread producer([&] {
    uint64_t random = 1;
    for (uint32_t i = 1; i <= kFrames;) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const uint32_t length = 17 + static_cast<uint32_t>((random >> 33) % (kRing / 4 - 16));
      while (!pair.put(length, i)) {
        ASSERT_FALSE(pair.producer.broken());
        pair.publish();
        std::this_thread::yield();
      }
      if ((random >> 60) < 6) pair.publish();
      ++i;
    }
    pair.publish();
  });
  uint32_t expected = 1;
  while (expected <= kFrames) {
    ring::FrameView view;
    const ring::Next next = pair.consumer.next(view);
    if (next != ring::Next::frame) {
      EXPECT_EQ(next, ring::Next::nothing);
      if (next != ring::Next::nothing) break;
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(view.header.row_count, expected);
    for (uint32_t at = 0; at < view.payload_bytes(); at += 7) {
      if (view.payload[at] != static_cast<std::byte>(expected))
        ADD_FAILURE() << "frame " << expected << " at " << at;
    }
    pair.consumer.release(view.token);
    pair.give_back();
    ++expected;
  }
  producer.join();
  EXPECT_EQ(pair.consumer.read(), pair.producer.committed());
}

}  // namespace
}  // namespace faro::test
