// The set of rings with something to send: nothing is lost, everything gets its turn.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "transport/pending_rings.h"

namespace faro::transport::tcp {
namespace {

std::vector<uint32_t> take_all(PendingRings& rings) {
  std::vector<uint32_t> taken;
  rings.take([&](uint32_t ring) {
    taken.push_back(ring);
    return true;
  });
  return taken;
}

TEST(PendingRingsTest, what_is_marked_is_taken_once) {
  PendingRings rings(10'000);
  EXPECT_FALSE(rings.any());
  for (const uint32_t ring : {0u, 63u, 64u, 4095u, 4096u, 9999u, 64u}) rings.mark(ring);
  EXPECT_TRUE(rings.any());
  EXPECT_EQ(take_all(rings), (std::vector<uint32_t>{0, 63, 64, 4095, 4096, 9999}));
  EXPECT_FALSE(rings.any());
  EXPECT_TRUE(take_all(rings).empty());
}

TEST(PendingRingsTest, a_taker_that_has_had_enough_leaves_the_rest) {
  PendingRings rings(10'000);
  for (uint32_t ring = 0; ring < 10'000; ++ring) rings.mark(ring);
  std::vector<bool> taken(10'000);
  uint32_t count = 0;
  while (rings.any()) {
    uint32_t room = 100;
    rings.take([&](uint32_t ring) {
      if (room == 0) return false;
      --room;
      EXPECT_FALSE(taken[ring]);
      taken[ring] = true;
      ++count;
      return true;
    });
  }
  EXPECT_EQ(count, 10'000u);
}

TEST(PendingRingsTest, rings_that_are_marked_again_and_again_do_not_starve_others) {
  for (const uint32_t room_each : {1u, 5u, 64u, 128u}) {
    SCOPED_TRACE(room_each);
    PendingRings rings(10'000);
    std::vector<bool> taken(10'000);
    uint32_t missing = 10'000;
    for (uint32_t ring = 0; ring < 10'000; ++ring) rings.mark(ring);
    for (uint32_t turns = 0; turns < 10'000 / room_each + 2 && missing > 0; ++turns) {
      uint32_t room = room_each;
      rings.take([&](uint32_t ring) {
        if (room == 0) return false;
        --room;
        if (!taken[ring]) --missing;
        taken[ring] = true;
        rings.mark(ring);  // wants more at once
        return true;
      });
    }
    EXPECT_EQ(missing, 0u);
  }
}

TEST(PendingRingsTest, marks_of_many_threads_are_all_taken) {
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kRings = 300;
  constexpr uint64_t kMarks = 20'000;
  PendingRings rings(kRings);
  // Each marker counts in its ring before it marks; the taker sums up the highest count seen per ring.
  std::vector<std::atomic<uint64_t>> counts(kThreads * kRings);
  std::atomic<uint32_t> running{kThreads};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kMarks; ++i) {
        const uint32_t ring = static_cast<uint32_t>((i * 7 + t * 13) % kRings);
        counts[t * kRings + ring].fetch_add(1, std::memory_order_relaxed);
        rings.mark(ring);
      }
      running.fetch_sub(1, std::memory_order_seq_cst);
    });
  }
  std::vector<uint64_t> seen(kThreads * kRings);
  for (bool last = false; !last;) {
    last = running.load(std::memory_order_seq_cst) == 0;  // then one more look
    uint32_t room = 50;
    do {
      room = 50;
      rings.take([&](uint32_t ring) {
        if (room == 0) return false;
        --room;
        for (uint32_t t = 0; t < kThreads; ++t)
          seen[t * kRings + ring] = counts[t * kRings + ring].load(std::memory_order_relaxed);
        return true;
      });
    } while (rings.any());
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], counts[i].load()) << i;
}

}  // namespace
}  // namespace faro::transport::tcp
