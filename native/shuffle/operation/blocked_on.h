// BlockedOn: what a worker waits for, as `faro explain` shows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

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
/// A worker that waits for a condition of the engine's waits for everything that calls within that
/// condition have run into: an event loop tries all its shuffles in a turn, and a binding waits by
/// a condition that makes one call.
///
/// Threads: the worker.
class BlockedOn {
 public:
  explicit BlockedOn(const WorkerContext& worker) : worker_(worker) {}

  /// While it exists, what calls run into is collected.
  class InCondition {
   public:
    explicit InCondition(BlockedOn& blocked) : blocked_(blocked), outer_(blocked.collects_) {
      blocked_.collects_ = true;
      if (!outer_) blocked_.forget_collected();
    }
    ~InCondition() { blocked_.collects_ = outer_; }
    InCondition(const InCondition&) = delete;
    InCondition& operator=(const InCondition&) = delete;

   private:
    BlockedOn& blocked_;
    const bool outer_;  // conditions may look at others, without waiting
  };

  void nothing() noexcept {
    last_.wait.kind = counters::WaitKind::none;
    last_.shuffle = nullptr;
  }
  /// Rows of a shuffle. `sender`: the only one that is polled, or counters::kAnyPeer. `senders` stays as long as
  /// the worker is blocked.
  Outcome rows(ShuffleCounts& shuffle, uint64_t sender, const AwaitedSenders& senders) noexcept;
  /// Room in the ring to a receiver, or in the queue before it. `at_node`: the ring ends at the receiver's node.
  Outcome room(ShuffleCounts& shuffle, uint32_t receiver_worker, bool at_node) noexcept;
  Outcome outcome_of(const QueryId& query) noexcept;
  /// What calls within it have run into, or, if that is nothing, the condition itself.
  Outcome condition() noexcept;
  Outcome overflow(const QueryId& query) noexcept;

  /// A call answers that it would wait.
  void call_would_wait() noexcept {
    if (collects_) [[unlikely]]
      collect();
  }
  /// Whether a call in the condition that the worker has looked at last would have waited for something.
  bool has_collected() const noexcept { return collected_count_ > 0; }

  /// Whether the worker waits for room in rings, and for nothing else.
  bool is_on_room_alone() const noexcept;
  /// Whether some of that room is for rows of the query, for rows of the stage, or at the worker.
  bool is_on_room_of(const QueryId& query) const noexcept;
  bool is_on_room_of(const QueryId& query, uint32_t stage) const noexcept;
  bool is_on_room_at(uint32_t receiver_worker) const noexcept;
  /// The shuffle is closed: nobody waits for anything of it any more.
  void forget(const ShuffleCounts& shuffle) noexcept;

  /// Tells whoever looks from outside; not within a condition. `due`: the worker is about to sleep in
  /// a call, until then at most; 0: it only tries.
  void publish(base::Nanoseconds since, base::Nanoseconds due) noexcept;
  void withdraw() noexcept;
  bool is_published() const noexcept { return published_; }

  /// Counts once more that the shuffle is blocked that was tried last, also by the condition that the worker waits for.
  void count() noexcept;
  /// Where the time of it counts; null if it was no shuffle.
  std::shared_ptr<BlockedCounts> shared_counts() noexcept;
  /// Where that is.
  const BlockedCounts* counts() const noexcept {
    return last_.shuffle == nullptr ? nullptr : &(last_.shuffle->*last_.side);
  }

 private:
  struct Met {
    counters::WaitRecord wait;
    const AwaitedSenders* senders = nullptr;  // if it is rows
    ShuffleCounts* shuffle = nullptr;         // whose rows or room it is
    BlockedCounts ShuffleCounts::*side = nullptr;
  };

  void collect() noexcept;
  void forget_collected() noexcept {
    collected_count_ = 0;
    collected_too_many_ = 0;
  }
  std::span<const Met> what() const noexcept;
  std::span<Met> what() noexcept;
  template <typename Is>
  bool is_on_room(const Is& is) const noexcept;
  void publish_slot(uint32_t slot, Met& met) noexcept;

  const WorkerContext& worker_;
  Met last_;  // what the last attempt has run into
  bool published_ = false;
  bool collects_ = false;
  size_t collected_count_ = 0;
  uint64_t collected_too_many_ = 0;  // and there was no room for
  std::array<Met, counters::kWaitSlots> collected_;
};

}  // namespace faro::shuffle
