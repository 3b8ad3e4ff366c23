// PreAggregation: the sending half of an aggregation: rows meet a table before they are sent, or
// pass it. Not part of the API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "faro/detail/group_table.h"
#include "faro/detail/hot_keys.h"
#include "faro/detail/operator_hash.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/table_rule.h"
#include "faro/outcome.h"
#include "faro/sender.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// Adds rows to a table that TableRule chooses. When it is full its groups are sent, each to the
/// receiver of its key; so are rows that pass it, as states of one row.
///
/// Threads: those of the worker.
template <typename Groups>
class PreAggregation {
 public:
  using Table = GroupTable<Groups>;
  using Group = typename Groups::Group;
  using Row = typename Groups::Row;
  using Key = typename Groups::Key;
  using Sender = typename Groups::Sender;

  /// `most_heap_bytes`: of the table's heap.
  PreAggregation(OperatorPart& part, const Groups& groups, uint32_t most_states,
                 uint64_t most_heap_bytes, std::optional<uint32_t> fixed)
      : part_(part),
        kind_(groups),
        number_(part.number()),
        most_heap_bytes_(most_heap_bytes),
        table_(part, groups),
        rule_(most_states, fixed),
        is_adaptive_(!fixed) {}

  /// By which it sends.
  void use(const Sender& sender) noexcept { sender_ = sender; }

  /// Adds the first of these rows, as many as there is room for, without waiting. `outcome`: done
  /// if there may be room for more at once; else why a state was not sent.
  size_t add(std::span<const Row> rows, Outcome& outcome) {
    outcome = Outcome::done;
    if (is_sending_ && (outcome = send_table()) != Outcome::done) return 0;
    if (rule_.states() == 0) return pass_some(rows, outcome);
    if (table_.capacity() != rule_.states() && !use_table()) {
      outcome = Outcome::failed;
      return 0;
    }
    const size_t added = update(rows);
    if (added == rows.size()) return added;
    if (table_.has_heap_for(rows[added])) {
      full();
    } else if (!make_heap_for(rows[added])) {
      if (table_.size() == 0) return pass_one(rows.subspan(added), outcome);
      is_sending_ = true;
    }
    return added;
  }

  /// Sends what the table still has. done: all of it.
  Outcome flush() {
    is_sending_ |= table_.size() > 0;
    return is_sending_ ? send_table() : Outcome::done;
  }
  void clear() noexcept {
    table_.let_go();
    sent_ = 0;
    is_sending_ = false;
  }

  TableRule& rule() noexcept { return rule_; }
  const TableRule& rule() const noexcept { return rule_; }
  uint64_t rows() const noexcept { return rows_; }
  uint64_t states() const noexcept { return states_; }
  uint64_t rows_passed() const noexcept { return rows_passed_; }

 private:
  // Rows whose places are looked up together: the misses of one do not wait for those of another.
  static constexpr size_t kTogether = 32;
  // Up to that many groups lie in the first-level cache, where looking places up together costs
  // more than it saves.
  static constexpr uint64_t kFewGroups = 1024;
  // How many rows have one vote on frequent keys: of those that pass, and of those in a table from
  // which rows may pass soon, up to that many rows.
  static constexpr size_t kRowsPerVote = 8;
  static constexpr size_t kRowsPerVoteOfSample = 4;
  static constexpr size_t kRowsOfSample = 16 * 1024;
  // States that are sent between two looks at the clock.
  static constexpr size_t kAtOnce = 1024;

  uint64_t mixed(const Key& key) const noexcept { return mix(kind_.hash(key), number_); }
  auto mixed_of_record() const noexcept {
    return [this](const auto& record) { return mixed(kind_.key_of(record)); };
  }

  /// Room in the heap of the table for one more row, or more rows. Least heaps are of the reserve.
  bool make_heap_for(const auto& rows) {
    using From = typename Table::From;
    return table_.make_heap_for(rows, From::spilled, Groups::Heap::kLeastBytes) ||
           table_.make_heap_for(rows, From::left, most_heap_bytes_);
  }
  /// The first of these rows passes the table, which is empty, and has no room for it.
  size_t pass_one(std::span<const Row> rows, Outcome& outcome) {
    const size_t added = pass(rows.first(1), outcome);
    rows_ += added;
    return added;
  }

  /// A table of another size than before, which is empty, or grows. False: the operator has failed.
  bool use_table() {
    using From = typename Table::From;
    const auto mixed_of = mixed_of_record();
    while (!table_.resize(rule_.states(), From::left, mixed_of)) {
      if (rule_.states() > TableRule::kLeastStates) {
        (void)rule_.could_not_grow();
        if (table_.capacity() == rule_.states()) return true;
        continue;
      }
      if (table_.resize(rule_.states(), From::spilled, mixed_of)) break;
      (void)part_.fail_for_memory("its least table");
      return false;
    }
    return true;
  }

  size_t update(std::span<const Row> rows) {
    const uint64_t begin = part_.now_ns();
    size_t added = 0;
    if (voting_rows_ > 0) {
      vote(rows, kRowsPerVoteOfSample);
      voting_rows_ -= std::min(voting_rows_, rows.size());
    }
    while (added < rows.size()) {
      const size_t count = std::min(kTogether, rows.size() - added);
      const Row* const first = rows.data() + added;
      const size_t some =
          table_.size() <= kFewGroups ? update_few(first, count) : update_many(first, count);
      added += some;
      note_filling(some);
      if (some < count) break;
    }
    rows_ += added;
    if (added > 0) rule_.updated(added, part_.now_ns() - begin);
    return added;
  }
  size_t update_few(const Row* rows, size_t count) {
    const auto table = table_.view();
    const uint64_t number = number_;
    for (size_t i = 0; i < count; ++i) {
      const Key& key = kind_.key(rows[i]);
      if (!update_one(table, rows[i], key, mix(kind_.hash(key), number))) return i;
    }
    return count;
  }
  size_t update_many(const Row* rows, size_t count) {
    uint64_t hashes[kTogether];
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = mixed(kind_.key(rows[i]));
      table_.prefetch(hashes[i]);
    }
    for (size_t i = 0; i < count; ++i) table_.prefetch_group(hashes[i]);
    const auto table = table_.view();
    for (size_t i = 0; i < count; ++i) {
      if (!update_one(table, rows[i], kind_.key(rows[i]), hashes[i])) return i;
    }
    return count;
  }
  bool update_one(const typename Table::View& table, const Row& row, const Key& key,
                  uint64_t mixed) {
    if (!table_.has_heap_for(row)) [[unlikely]]
      return false;
    uint64_t place;
    Group* const group = table.find(key, mixed, place);
    if (group == nullptr) [[unlikely]]
      return table_.add(key, row, place);
    table_.update(group, row);
    return true;
  }
  void note_filling(uint64_t rows) noexcept {
    filling_.rows += rows;
    const uint64_t size = table_.size();
    if (size <= table_.capacity() / 2) filling_.rows_to_half = filling_.rows;
    if (size <= table_.capacity() / 4) filling_.rows_to_quarter = filling_.rows;
  }

  void full() noexcept {
    const TableRule::Full becomes = rule_.full(filling_, hot_.decide());
    const bool may_pass = is_adaptive_ && rule_.states() == TableRule::kLeastStates;
    voting_rows_ = may_pass ? kRowsOfSample : 0;
    if (becomes == TableRule::Full::grows) {
      grow();
    } else {
      is_sending_ = true;
    }
  }

  /// The groups that a larger table has taken over are a half or a quarter of it.
  void grow() noexcept {
    const bool is_doubled = rule_.states() == 2 * table_.capacity();
    filling_.rows_to_quarter = is_doubled ? filling_.rows_to_half : filling_.rows;
    filling_.rows_to_half = filling_.rows;
  }

  Outcome send_table() {
    while (sent_ < table_.size()) {
      const size_t count = std::min<size_t>(kAtOnce, table_.size() - sent_);
      const auto record = [&](size_t i) -> decltype(auto) { return table_.record(sent_ + i); };
      const Sent sent = timed_send(
          count, [&](size_t i) { return kind_.key_of(record(i)); },
          [&](size_t i) { return kind_.bytes(record(i)); },
          [&](size_t i, std::byte* to) { kind_.write(record(i), to); });
      sent_ += sent.rows;
      if (sent.outcome != Outcome::done) return sent.outcome;
    }
    table_.clear();
    if (table_.capacity() > TableRule::kLeastStates && rule_.states() == 0) table_.let_go();
    sent_ = 0;
    filling_ = {};
    is_sending_ = false;
    return Outcome::done;
  }

  /// Rows that pass, or, if their keys are frequent, meet a small table.
  size_t pass_some(std::span<const Row> rows, Outcome& outcome) {
    const std::span<const Row> some = rows.first(std::min(rows.size(), kAtOnce));
    if (is_adaptive_) vote(some, kRowsPerVote);
    const size_t added = hot_.any() ? pass_cold(some, outcome) : pass(some, outcome);
    rows_ += added;
    if (!rule_.passed(added)) return added;
    is_sending_ = table_.size() > 0;  // a sample begins with an empty table
    return added;
  }
  size_t pass(std::span<const Row> rows, Outcome& outcome) {
    const Sent sent = timed_send(
        rows.size(), [&](size_t i) { return kind_.key(rows[i]); },
        [&](size_t i) { return kind_.row_bytes(rows[i]); },
        [&](size_t i, std::byte* to) { kind_.write_row(rows[i], to); });
    rows_passed_ += sent.rows;
    outcome = sent.outcome;
    return sent.rows;
  }

  /// Rows of frequent keys are added to a table of the least size, the others pass. Those for which
  /// there is no room are added, too: so either all rows are taken, or none.
  size_t pass_cold(std::span<const Row> rows, Outcome& outcome) {
    if (table_.capacity() != TableRule::kLeastStates) {
      if (!table_.resize(TableRule::kLeastStates, Table::From::left, mixed_of_record()))
        return pass(rows, outcome);
    }
    const bool has_heap = table_.has_heap_for(rows) || make_heap_for(rows);
    if (!has_heap && table_.size() == 0) return pass(rows, outcome);
    if (!has_heap || table_.size() + rows.size() > table_.capacity()) {
      is_sending_ = true;
      return 0;
    }
    uint16_t cold[kAtOnce];
    size_t count = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint64_t hash = mixed(kind_.key(rows[i]));
      if (hot_.is_hot(hash)) {
        (void)update_one(table_.view(), rows[i], kind_.key(rows[i]), hash);
      } else {
        cold[count++] = static_cast<uint16_t>(i);
      }
    }
    const Sent sent = timed_send(
        count, [&](size_t i) { return kind_.key(rows[cold[i]]); },
        [&](size_t i) { return kind_.row_bytes(rows[cold[i]]); },
        [&](size_t i, std::byte* to) { kind_.write_row(rows[cold[i]], to); });
    rows_passed_ += sent.rows;
    for (size_t i = sent.rows; i < count; ++i) {
      const Row& row = rows[cold[i]];
      (void)update_one(table_.view(), row, kind_.key(row), mixed(kind_.key(row)));
    }
    if (sent.outcome != Outcome::would_wait && sent.outcome != Outcome::holding)
      outcome = sent.outcome;
    return rows.size();
  }
  void vote(std::span<const Row> rows, size_t step) noexcept {
    for (size_t i = 0; i < rows.size(); i += step) hot_.vote(mixed(kind_.key(rows[i])));
  }

  /// Sends `count` records by their key, their bytes, and what writes them.
  template <typename KeyOf, typename Bytes, typename Fill>
  Sent timed_send(size_t count, KeyOf key, Bytes bytes, Fill fill) {
    const uint64_t begin = part_.now_ns();
    const Sent sent = kind_.send(sender_, count, key, bytes, fill);
    states_ += sent.rows;
    if (sent.outcome == Outcome::done) rule_.sent(count, part_.now_ns() - begin);
    return sent;
  }

  OperatorPart& part_;
  const Groups& kind_;
  const uint64_t number_;
  const uint64_t most_heap_bytes_;
  Sender sender_;
  Table table_;
  TableRule rule_;
  HotKeys hot_;
  const bool is_adaptive_;
  size_t voting_rows_ = is_adaptive_ ? kRowsOfSample : 0;  // rows of which some vote
  TableFilling filling_;
  bool is_sending_ = false;
  size_t sent_ = 0;  // of the groups in the table
  uint64_t rows_ = 0;
  uint64_t states_ = 0;
  uint64_t rows_passed_ = 0;
};

}  // namespace faro::detail

#pragma GCC visibility pop
