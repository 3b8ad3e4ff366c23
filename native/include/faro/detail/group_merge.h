// GroupMerge: the receiving half of an aggregation: states by partition, merged in cache. Not part
// of the API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "faro/batch.h"
#include "faro/detail/group_table.h"
#include "faro/detail/operator_hash.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "faro/detail/partitioning.h"
#include "faro/outcome.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// Keeps the states that arrive by partition. When all have come each partition is merged by a
/// table that stays in the cache; one that has too many groups for it is split once more, by a hash
/// that is mixed anew.
///
/// Threads: those of the worker.
template <typename Groups>
class GroupMerge {
 public:
  using Table = GroupTable<Groups>;
  using Record = typename Groups::Record;

  static constexpr uint64_t kLeastStates = 4096;

  /// What it takes at least: open partitions of two levels, a block that is read, a table.
  static constexpr uint64_t least_bytes(const Groups& groups) noexcept {
    return PartitionStore::least_bytes(Partitioning::kBits, groups.width()) +
           PartitionStore::least_bytes(Partitioning::kSplitBits, groups.width()) +
           PartitionReader::least_bytes(groups.width()) + Table::bytes(groups, kLeastStates) +
           Groups::Heap::kLeastBytes;
  }

  GroupMerge(OperatorPart& part, const Groups& groups)
      : part_(part), kind_(groups), table_(part, groups) {
    add_level(Partitioning::kBits);
  }

  uint64_t states() const noexcept { return states_; }
  uint64_t splits() const noexcept { return splits_; }
  uint64_t groups() const noexcept { return groups_; }

  /// Keeps the states of a batch. False: the operator has failed, or was cleared. The bytes are a
  /// peer's: what says how long a record is, is copied before it is looked at.
  bool take(const Batch& batch) {
    if (levels_.empty()) return false;
    Level& level = *levels_.front();
    const auto keep = [&](const Record& record) {
      return append(level, Partitioning::kBits, record);
    };
    if (!kind_.each_received(batch, part_, keep)) return false;
    states_ += batch.row_count();
    return true;
  }

  /// Lets go of everything.
  void clear() noexcept {
    table_.let_go();
    reader_.reset();
    sub_ = nullptr;
    split_.reset();
    levels_.clear();
  }

  /// The groups of the partition that next() has merged last, until it is called again.
  const Table& table() const noexcept { return table_; }

  /// Merges on, until table() has the groups of one partition, or there are none left
  /// (end_of_stream), or `is_over` says so (deadline). It is asked, and so is whether the query is
  /// alive, after some thousand states.
  template <typename IsOver>
  Outcome next(IsOver is_over) {
    if (has_handed_out_) table_.clear();
    has_handed_out_ = false;
    while (!levels_.empty()) {
      Level& level = *levels_.back();
      if (level.next == level.store.partition_count()) {
        levels_.pop_back();
        continue;
      }
      if (!reader_ && !begin(level)) continue;
      const Outcome outcome = merge_some(level);
      if (outcome == Outcome::failed) return outcome;
      if (outcome == Outcome::end_of_stream) {
        end(level);
        if (table_.size() == 0) continue;
        groups_ += table_.size();
        has_handed_out_ = true;
        return Outcome::done;
      }
      if (!part_.is_alive()) return Outcome::failed;
      if (is_over()) return Outcome::deadline;
    }
    table_.let_go();
    return Outcome::end_of_stream;
  }

 private:
  // Between two looks at the clock.
  static constexpr size_t kAtOnce = 4096;

  /// Partitions of one hash, and the first of them that was not merged.
  struct Level {
    Level(OperatorPart& part, uint32_t bits, uint64_t mixed_with)
        : store(part, bits), number(mixed_with) {}
    PartitionStore store;
    const uint64_t number;
    uint32_t next = 0;
  };

  void add_level(uint32_t bits) {
    const auto depth = static_cast<uint32_t>(levels_.size());
    levels_.push_back(std::make_unique<Level>(part_, bits, number_of_level(part_.number(), depth)));
  }

  uint64_t mixed(const Record& record, const Level& level) const noexcept {
    return mix(kind_.hash(kind_.key_of(record)), level.number);
  }
  bool append(Level& level, uint32_t bits, const Record& record) {
    return kind_.append(level.store, local_partition(mixed(record, level), bits), record);
  }

  /// False: the partition is empty.
  bool begin(Level& level) {
    if (level.store.row_bytes(level.next) == 0) {
      level.store.clear(level.next++);
      return false;
    }
    reader_.emplace(level.store, level.next);
    run_ = {};
    return true;
  }
  void end(Level& level) {
    reader_.reset();
    ++level.next;
    if (sub_ == nullptr) return;
    sub_ = nullptr;
    levels_.push_back(std::move(split_));
  }

  /// Merges the next states, or moves them on to the level below. done: there may be more.
  Outcome merge_some(Level& level) {
    if (run_.empty()) {
      std::span<const std::byte> bytes;
      const Outcome outcome = reader_->next(bytes);
      if (outcome != Outcome::done) return outcome;
      run_ = bytes;
    }
    for (size_t i = 0; i < kAtOnce && !run_.empty(); ++i) {
      const Record record = kind_.first_of(run_);
      if (!(sub_ != nullptr ? pass_down(record) : merge(level, record))) return Outcome::failed;
      run_ = run_.subspan(kind_.bytes(record));
    }
    return Outcome::done;
  }

  bool merge(Level& level, const Record& record) {
    if (!table_.has_heap_for(record)) [[unlikely]] {
      if (!make_heap(record)) return false;
      if (sub_ != nullptr) return pass_down(record);
    }
    const auto key = kind_.key_of(record);
    const uint64_t hash = mix(kind_.hash(key), level.number);
    uint64_t place = 0;
    if (table_.capacity() > 0) {
      if (auto* const known = table_.view().find(key, hash, place)) {
        table_.merge(known, record);
        return true;
      }
    }
    if (table_.size() == table_.capacity()) [[unlikely]] {
      if (!make_room(level)) return false;
      if (sub_ != nullptr) return pass_down(record);
      (void)table_.view().find(key, hash, place);
    }
    table_.add(record, place);
    return true;
  }

  /// The table is full: it grows while it stays in the cache; else the partition is split.
  bool make_room(Level& level) {
    using From = typename Table::From;
    const uint64_t states = std::max(kLeastStates, 2 * table_.capacity());
    const bool is_last = levels_.size() == Partitioning::kMostLevels;
    const auto mixed_of = [&](const auto& record) { return mixed(record, level); };
    const bool fits = states == kLeastStates || is_last ||
                      Table::bytes(kind_, states) <= Partitioning::kCacheBytes;
    if (fits && table_.resize(states, From::spilled, mixed_of)) return true;
    return split_or_fail();
  }
  /// So does its heap; a single group may have more than that.
  bool make_heap(const Record& record) {
    using From = typename Table::From;
    const bool is_all = levels_.size() == Partitioning::kMostLevels || table_.size() <= 1;
    if (table_.make_heap_for(record, From::spilled,
                             is_all ? UINT64_MAX : Partitioning::kCacheBytes))
      return true;
    return split_or_fail();
  }
  bool split_or_fail() {
    const bool is_last = levels_.size() == Partitioning::kMostLevels;
    if (!part_.is_alive()) return false;
    if (is_last || table_.size() == 0) {
      (void)part_.fail_for_memory("the groups of one partition");
      return false;
    }
    return split();
  }

  /// What the table has, and what comes, goes to partitions of its own.
  bool split() {
    const auto depth = static_cast<uint32_t>(levels_.size());
    split_ = std::make_unique<Level>(part_, Partitioning::kSplitBits,
                                     number_of_level(part_.number(), depth));
    sub_ = split_.get();
    ++splits_;
    for (uint64_t i = 0; i < table_.size(); ++i) {
      if (!pass_down(table_.record(i))) return false;
    }
    table_.let_go();
    return true;
  }
  bool pass_down(const Record& record) { return append(*sub_, Partitioning::kSplitBits, record); }

  OperatorPart& part_;
  const Groups& kind_;
  Table table_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::unique_ptr<Level> split_;  // where the partition that is read goes, until it has gone
  Level* sub_ = nullptr;          // it, or null
  std::optional<PartitionReader> reader_;
  std::span<const std::byte> run_;  // what was read and not merged
  bool has_handed_out_ = false;
  uint64_t states_ = 0;
  uint64_t groups_ = 0;
  uint64_t splits_ = 0;
};

}  // namespace faro::detail

#pragma GCC visibility pop
