// ShuffleCounts: what one shuffle of one worker has counted. Kept by its query as long as that is known here, and by its
// handle.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "counters/records.h"
#include "faro/metrics.h"
#include "faro/shuffle.h"

namespace faro::shuffle {

// All counts are written by the worker alone, for a frame or a call, never for a row, and read by any thread. Bytes are
// those of rows, with their lengths where they have one each.

/// Rows for one receiver.
struct SentCounts {
  counters::Counter rows{
      0};  // in frames committed or queued; what was dropped from a queue is taken back
  counters::Counter bytes{0};
  counters::Counter frames{0};
  counters::Counter no_room{0};
  counters::Counter rows_out_overflow{0};
  counters::Counter bytes_out_overflow{0};

  /// Counts one frame, or one row too large for a frame.
  void add(uint64_t of_rows, uint64_t of_bytes) noexcept {
    counters::count(rows, of_rows);
    counters::count(bytes, of_bytes);
    counters::count(frames);
  }
  void take_back(uint64_t of_rows, uint64_t of_bytes) noexcept {
    counters::count(rows, -of_rows);
    counters::count(bytes, -of_bytes);
    counters::count(frames, -uint64_t{1});
  }
  void add_queued(uint64_t of_rows, uint64_t of_bytes) noexcept {
    counters::count(rows_out_overflow, of_rows);
    counters::count(bytes_out_overflow, of_bytes);
  }
};

/// Rows of one sender.
struct ReceivedCounts {
  counters::Counter rows{0};  // handed out
  counters::Counter bytes{0};
  counters::Counter batches{0};
  counters::Counter rows_spilled{0};
  counters::Counter bytes_spilled{0};

  void add(uint64_t of_rows, uint64_t of_bytes) noexcept {
    counters::count(rows, of_rows);
    counters::count(bytes, of_bytes);
    counters::count(batches);
  }
  void add_spilled(uint64_t of_rows, uint64_t of_bytes) noexcept {
    counters::count(rows_spilled, of_rows);
    counters::count(bytes_spilled, of_bytes);
  }
};

/// What was received of each sender of a stage, by worker number. Few of all workers may be
/// senders, so there is room for those that have sent, and for those with numbers close by.
/// Threads: the worker makes and counts, any reads.
class ReceivedBySender {
  using Group = std::array<ReceivedCounts, 16>;

 public:
  static constexpr uint32_t kGroup = std::tuple_size_v<Group>;
  static constexpr uint32_t groups(uint32_t workers) { return (workers + kGroup - 1) / kGroup; }

  explicit ReceivedBySender(uint32_t workers)
      : count_(groups(workers)), groups_(new std::atomic<Group*>[count_]()) {}
  ~ReceivedBySender() {
    for (uint32_t g = 0; g < count_; ++g) delete groups_[g].load(std::memory_order_relaxed);
  }
  ReceivedBySender(const ReceivedBySender&) = delete;
  ReceivedBySender& operator=(const ReceivedBySender&) = delete;

  /// Makes room if there is none. Throws: std::bad_alloc.
  void make(uint32_t sender) {
    std::atomic<Group*>& group = groups_[sender / kGroup];
    // Partner: find. Whoever sees the group sees its zeros.
    if (group.load(std::memory_order_relaxed) == nullptr)
      group.store(new Group, std::memory_order_release);
  }
  /// The counts of a sender for which there is room.
  ReceivedCounts& of(uint32_t sender) noexcept {
    return (*groups_[sender / kGroup].load(std::memory_order_relaxed))[sender % kGroup];
  }
  /// Null: nothing has come.
  const ReceivedCounts* find(uint32_t sender) const noexcept {
    const Group* const group = groups_[sender / kGroup].load(std::memory_order_acquire);
    return group == nullptr ? nullptr : &(*group)[sender % kGroup];
  }

 private:
  const uint32_t count_;
  const std::unique_ptr<std::atomic<Group*>[]> groups_;
};

/// Calls of one side of a shuffle that could not be done at once.
struct BlockedCounts {
  counters::Counter calls{0};
  counters::Counter ns{0};  // of waits that are over
};

class ShuffleCounts : public std::enable_shared_from_this<ShuffleCounts> {
 public:
  /// The counts of `worker`, which sends to that many receivers, 0 if it is no sender. `received`: null if it is no receiver.
  ShuffleCounts(const ShuffleSpec& spec, uint32_t worker, uint32_t receiver_count,
                std::shared_ptr<const ReceivedBySender> received);

  const QueryId& query() const noexcept { return query_; }
  uint32_t stage() const noexcept { return stage_; }
  SentCounts& sent(uint32_t receiver) noexcept { return sent_[receiver]; }
  BlockedCounts on_room;
  BlockedCounts on_rows;

  /// Threads: any.
  ShuffleMetrics metrics() const;

 private:
  const QueryId query_;
  const uint32_t stage_;
  const uint32_t worker_;
  const uint32_t receiver_count_;  // 0: this worker is no sender
  std::vector<uint32_t> senders_;  // none: this worker is no receiver
  const std::unique_ptr<SentCounts[]> sent_;
  const std::shared_ptr<const ReceivedBySender> received_;
};

/// The shuffles that the workers of this node have opened in one query. Threads: any.
class QueryShuffles {
 public:
  /// Throws: std::bad_alloc; then nothing has changed.
  void add(std::shared_ptr<const ShuffleCounts> counts) {
    const std::lock_guard lock(mutex_);
    shuffles_.push_back(std::move(counts));
  }
  /// In the order in which they were opened.
  std::vector<ShuffleMetrics> metrics() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const ShuffleCounts>> shuffles_;
};

}  // namespace faro::shuffle
