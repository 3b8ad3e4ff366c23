// Doorbell: what a sleeping worker waits on, rung only when it sleeps; across threads and processes.
//
// One line per worker, in memory that all its shm peers map. It is only a hint: the state that
// matters (ready words, positions) lies elsewhere, and sleeps are bounded, so that a peer that
// writes nonsense here, or withholds a ring, costs latency and never progress.
//
// The race "the sleeper looks, the ringer publishes, the sleeper sleeps" is excluded as follows.
//   sleeper: S1 sleeping := 1 (seq_cst RMW)    S2 look at the state (seq_cst loads)   S3 sleep while 1
//   ringer:  R1 publish state (seq_cst RMW/store)    R2 load sleeping (seq_cst)   R3 if 1: := 0, wake
// All four are in the single total order of seq_cst operations: if R2 reads 0 then R2 < S1, hence
// R1 < S2 and the sleeper sees the state. No fence is used: g++'s thread sanitizer knows none.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/clock.h"

namespace faro::ring {

struct alignas(64) DoorbellLine {
  std::atomic<uint32_t> sleeping;  // 1: its worker sleeps or is about to; written by both sides
  uint32_t unused[15];
};
static_assert(sizeof(DoorbellLine) == 64);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

/// Wakes the line's worker if it sleeps. Call after publishing what it should see with a seq_cst
/// operation. Threads: any, any process. Blocks: never (a system call only if there is a sleeper).
/// Returns whether there was a sleeper.
bool ring_doorbell(DoorbellLine& line) noexcept;

/// The sleeping side; one thread at a time.
class Doorbell {
 public:
  explicit Doorbell(DoorbellLine* line) : line_(line) {}

  /// Announces the intent to sleep. Look at everything once more before `sleep`.
  void arm() noexcept { line_->sleeping.exchange(1, std::memory_order_seq_cst); }
  /// Takes the announcement back.
  void disarm() noexcept { line_->sleeping.store(0, std::memory_order_relaxed); }
  /// Sleeps until rung, at most that long; returns at once if rung since `arm`. Disarms.
  void sleep(base::Nanoseconds at_most) noexcept;

  DoorbellLine& line() noexcept { return *line_; }

 private:
  DoorbellLine* line_;
};

/// Sleeps until one of several armed doorbells rings, at most that long, for one thread that serves
/// many workers; returns at once if one was rung since it was armed. Which one: its line reads 0. May
/// return early. Where the kernel cannot wait for that many it sleeps a millisecond at a time.
/// Threads: any; the lines stay armed.
void sleep_on_any(std::span<DoorbellLine* const> lines, base::Nanoseconds at_most) noexcept;

}  // namespace faro::ring
