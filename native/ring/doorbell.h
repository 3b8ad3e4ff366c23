// Doorbell: what a sleeping worker waits on, rung only when it sleeps; across threads and processes.
//
// One line per worker, in memory that all its shm peers map. It is only a hint: the state that
// matters (ready words, positions) lies elsewhere, and sleeps are bounded, so that a peer that
// writes nonsense here, or withholds a ring, costs latency and never progress (native/DESIGN.md#hc-12).
//
// The race "the sleeper looks, the ringer publishes, the sleeper sleeps" is excluded by the order of the steps S1 to S3
// (arm, the look of whoever sleeps, sleep) and R1 to R3 (what the caller has published, ring_doorbell), which are all
// seq_cst: native/DESIGN.md#memory-orders defines them and says why.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/clock.h"

namespace faro::ring {

/// What a sleeper is woken for: what DoorbellLine::sleeping says.
enum class WokenFor : uint32_t {
  all = 1,
  all_but_frames = 2,  // posts of frames do not ring
};

struct alignas(64) DoorbellLine {
  // 0, or its worker sleeps or is about to, and this is the WokenFor; written by both sides
  std::atomic<uint32_t> sleeping;
  uint32_t unused[15];
};
static_assert(sizeof(DoorbellLine) == 64);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

/// Wakes the line's worker if it sleeps (R2, R3). First publish what it should see, with a seq_cst operation (R1).
/// Threads: any, any process. Blocks: never (a system call only if there is a sleeper). Returns whether there was a
/// sleeper.
bool ring_doorbell(DoorbellLine& line) noexcept;

/// Wakes the line's worker if it sleeps and is to be woken for frames: these are all that it should
/// see. First publish them, as for ring_doorbell, whose threads and blocking it has. Returns
/// whether it has woken the worker.
bool ring_for_frames(DoorbellLine& line) noexcept;

/// Wakes one of several workers that sleeps and is to be woken for frames, if there is one: any of them may take what was
/// published, and each looks before it sleeps. `turn` is the caller's: where the search begins, which is another place each
/// time. Publish first, as for ring_doorbell, whose threads and blocking it has. Returns whether it has woken one.
bool ring_one_for_frames(std::span<DoorbellLine* const> lines, uint32_t& turn) noexcept;

/// The sleeping side; one thread at a time.
class Doorbell {
 public:
  explicit Doorbell(DoorbellLine* line) : line_(line) {}

  /// Announces the intent to sleep (S1). Look at everything once more (S2) before `sleep` (S3).
  void arm(WokenFor what = WokenFor::all) noexcept {
    armed_ = static_cast<uint32_t>(what);
    line_->sleeping.exchange(armed_, std::memory_order_seq_cst);  // S1
  }
  /// Takes the announcement back.
  void disarm() noexcept { line_->sleeping.store(0, std::memory_order_relaxed); }
  /// Sleeps until rung, at most that long; returns at once if rung since `arm`. Disarms.
  void sleep(base::Nanoseconds at_most) noexcept;

  DoorbellLine& line() noexcept { return *line_; }

 private:
  DoorbellLine* line_;
  uint32_t armed_ = 0;  // with that
};

/// What somebody has read in a line before he sleeps on it.
struct SeenLine {
  DoorbellLine* line = nullptr;
  uint32_t sleeping = 0;  // as it was
};

/// Sleeps until one of several doorbells rings, at most that long, for one thread that serves many workers; returns at
/// once if one does not read as it was seen. One that was not armed then may be armed meanwhile: its next ring ends the
/// sleep, too. May return early. Where the kernel cannot wait for that many it sleeps a millisecond at a time.
/// Threads: any; the lines stay as they are.
void sleep_on_any(std::span<const SeenLine> lines, base::Nanoseconds at_most) noexcept;

}  // namespace faro::ring
