// Operation: what a worker's current call is about, what it waits for and since when, and what becomes of it where memory or
// overflow is exhausted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "faro/outcome.h"
#include "faro/status.h"
#include "shuffle/operation/blocked_on.h"
#include "shuffle/operation/worker_context.h"

namespace faro::shuffle {

class ShuffleSide;

/// A worker has one. An attempt begins it anew; what it waits for lasts from one attempt to the next.
///
/// Threads: the worker, except where said.
class Operation {
 public:
  explicit Operation(const WorkerContext& worker) : worker_(worker), blocked_on_(worker) {}

  void begin() noexcept {
    blocked_on_.nothing();
    query_ = nullptr;
    side_ = nullptr;
  }
  /// From here on it is about `query`: if there is no memory for it, that fails, and `side` says so.
  void is_about(Query& query, ShuffleSide* side) noexcept {
    query_ = &query;
    side_ = side;
  }
  /// The calls within a condition are over: what fails from here on is told by the next one of them, and not by what waits.
  void condition_is_over() noexcept { side_ = nullptr; }

  /// There is no memory for something small: the query that this is about fails, or, if it is about none,
  /// the one that has most in overflow. Answers failed if a side says so, else would_wait.
  Outcome lack_memory() noexcept;
  /// Overflow is full: fails the query that uses most, or `query` if it is above its own limit. Answers
  /// failed if that is `query`, else would_wait.
  Outcome overflow_exhausted(const std::shared_ptr<Query>& query, uint64_t bytes,
                             const Status& cause);

  // --- waiting

  BlockedOn& blocked_on() noexcept { return blocked_on_; }
  const BlockedOn& blocked_on() const noexcept { return blocked_on_; }

  /// A call that waits until it is done: nobody but this call can make room in the worker's own rings.
  bool call_waits() const noexcept { return call_waits_; }
  void set_call_waits(bool waits) noexcept { call_waits_ = waits; }
  /// A call is in the middle of a row, which it cuts from its caller's memory: the worker receives nothing before the row
  /// has ended.
  bool is_within_row() const noexcept { return within_row_; }
  void set_within_row(bool within) noexcept { within_row_ = within; }
  /// A call of the worker waits, and may sleep. Threads: any.
  bool is_waiting() const noexcept { return waiting_.load(std::memory_order_acquire); }
  void begin_wait(base::Nanoseconds now) noexcept;
  void end_wait() noexcept;

  /// Rows have moved.
  void progressed() noexcept {
    stalled_since_ = 0;
    end_published();
  }
  /// Whoever looks from outside is told no more that the worker waits.
  void end_published() noexcept {
    if (blocked_on_.is_published()) [[unlikely]]
      withdraw();
  }
  /// Without progress since then; 0: there was some.
  base::Nanoseconds stalled_since() const noexcept { return stalled_since_; }
  void stall(base::Nanoseconds now) noexcept { stalled_since_ = now; }

  /// The time from here on counts as a wait of the shuffle that was tried last.
  void begin_blocked(base::Nanoseconds now) noexcept;
  /// Does so unless it counts as one of that shuffle already: a call that is armed again without progress.
  void go_on_blocked(base::Nanoseconds now) noexcept;
  void end_blocked() noexcept;

 private:
  void withdraw() noexcept;

  const WorkerContext& worker_;
  BlockedOn blocked_on_;
  Query* query_ = nullptr;
  ShuffleSide* side_ = nullptr;
  std::atomic<bool> waiting_{false};
  bool call_waits_ = false;
  bool within_row_ = false;
  base::Nanoseconds stalled_since_ = 0;
  std::shared_ptr<BlockedCounts> blocked_;  // of the shuffle that a call waits for, also armed
  base::Nanoseconds blocked_since_ = 0;
};

}  // namespace faro::shuffle
