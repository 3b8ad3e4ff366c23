// BlockedOn: what a worker waits for, as `faro explain` shows it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "counters/counter_file.h"
#include "faro/outcome.h"
#include "faro/query.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/query/shuffle_counts.h"

namespace faro::shuffle {

/// Whose rows a receiver still waits for.
class AwaitedSenders {
 public:
  virtual ~AwaitedSenders() = default;
  virtual bool awaits(uint32_t sender_worker) const noexcept = 0;
};

/// An attempt that cannot be done now says here what it waits for, and answers what this returns:
/// would_wait. Only a wait that lasts is written to the counter file, which is not on the way of any row.
///
/// Threads: the worker.
class BlockedOn {
 public:
  explicit BlockedOn(const WorkerContext& worker) : worker_(worker) {}

  void nothing() noexcept {
    wait_.kind = counters::WaitKind::none;
    shuffle_ = nullptr;
  }
  /// Rows of a shuffle. `sender`: the only one that is polled, or counters::kAnyPeer. `senders` stays as long as
  /// the worker is blocked.
  Outcome rows(ShuffleCounts& shuffle, uint64_t sender, const AwaitedSenders& senders) noexcept;
  /// Room in the ring to a receiver, or in the queue before it.
  Outcome room(ShuffleCounts& shuffle, uint32_t receiver_worker) noexcept;
  Outcome outcome_of(const QueryId& query) noexcept;
  Outcome condition() noexcept;
  Outcome overflow(const QueryId& query) noexcept;

  /// Tells whoever looks from outside. `in_call`: the worker is about to sleep in a call; else it only tries.
  void publish(base::Nanoseconds since, bool in_call) noexcept;
  void withdraw() noexcept;
  bool is_published() const noexcept { return published_; }

  /// Counts once more that the shuffle is blocked that was tried last, also by the condition that the worker waits for.
  /// Returns where the time of it counts; null if it was no shuffle.
  std::shared_ptr<BlockedCounts> count() noexcept;
  /// Where that is.
  const BlockedCounts* counts() const noexcept {
    return shuffle_ == nullptr ? nullptr : &(shuffle_->*side_);
  }

 private:
  void publish_awaited() noexcept;

  const WorkerContext& worker_;
  counters::Wait wait_;
  const AwaitedSenders* senders_ = nullptr;  // if it is rows
  ShuffleCounts* shuffle_ = nullptr;         // whose rows or room it is
  BlockedCounts ShuffleCounts::*side_ = nullptr;
  bool published_ = false;
};

}  // namespace faro::shuffle
