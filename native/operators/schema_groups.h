// SchemaGroups: groups whose keys and functions are known only at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "faro/aggregate.h"
#include "faro/batch.h"
#include "faro/columns.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "faro/hash.h"
#include "faro/sender.h"
#include "faro/shuffle.h"
#include "operators/group_heap.h"

namespace faro::operators {

/// A key and its state: a fixed part, which says where the variable bytes lie from `base` on: in
/// the heap of a table, in the row that it was made of, or, where it is sent or kept by partition,
/// behind the fixed part.
struct GroupRecord {
  const std::byte* fixed;
  const std::byte* base;
  uint64_t
      variable_bytes;  // those of a row may count more than once: for a key, and for each function
};
/// The key of a record.
struct GroupKey {
  const std::byte* fixed;
  const std::byte* base;
  uint64_t hash;
};
/// A row as the record of one row.
struct GroupRow {
  GroupRecord record;
  uint64_t hash;
};

template <typename Word>
Word load(const std::byte* from) noexcept {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
template <typename Word>
void store(std::byte* to, const Word& word) noexcept {
  std::memcpy(to, &word, sizeof word);
}

/// How the groups of a Grouping lie in bytes, and what their columns are. The fixed part of a record is, all of it unaligned:
///
///   +-------------+------------+---------------------+--------------------+------------------+
///   | states of   | states of  | key columns with a  | Ref of each other  | a bit for each   |
///   | 16 bytes    | 8 bytes    | width, their null   | key column         | state that may   |
///   |             |            | bits; to 8 bytes    |                    | have no value    |
///   +-------------+------------+---------------------+--------------------+------------------+
///
/// A key is kept so that it is equal where its bytes are: null is 0 beside its bit, -0.0 is 0.0,
/// all NaN are one.
///
/// Threads: any; it does not change.
class GroupLayout {
 public:
  /// What workers have to agree on.
  const std::string& format() const noexcept { return format_; }
  /// The columns of what is handed out: the keys, then the results.
  const Schema& results() const noexcept { return results_; }
  bool has_keys() const noexcept { return !keys_.empty(); }
  /// Bytes of the fixed part.
  uint64_t width() const noexcept { return width_; }

  /// Makes the record of a row in width() bytes, which are 0, of the columns at these places.
  GroupRow record_of(std::span<const std::byte> row, std::span<const ColumnPlace> places,
                     std::byte* fixed) const noexcept;
  /// The record of no row.
  std::vector<std::byte> empty() const { return std::vector<std::byte>(width_); }
  /// The values of a group that is handed out. Errors: query_failed (a result does not fit its
  /// column).
  Status finish(const GroupRecord& record, std::span<Value> values) const;

 protected:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Bytes of variable width.
  struct Ref {
    uint32_t bytes;
    uint32_t at;
  };
  struct KeyColumn {
    uint32_t column;
    ColumnType type;
    uint32_t at;        // of the value, or of its Ref
    uint32_t null_bit;  // from the beginning of the fixed part; kNone: never null
  };
  /// What becomes of two states of a function, by what they hold.
  enum class Merge : uint8_t {
    counts,
    integer_sums,
    float_sums,
    integers,
    wide_integers,
    floats,
    words,
    wide_words,
    strings
  };
  struct State {
    AggregateFunction function;
    Merge merge;
    uint32_t column;
    ColumnType type;    // of the column
    uint32_t at;        // of the value, or of its Ref
    uint32_t has_bit;   // from the beginning of the fixed part; kNone: it always has a value
    uint32_t variable;  // 1: it is a Ref
  };

  static bool has(const std::byte* fixed, uint32_t bit) noexcept {
    return bit == kNone || (std::to_integer<unsigned>(fixed[bit / 8]) >> bit % 8 & 1) != 0;
  }
  static void set(std::byte* fixed, uint32_t bit) noexcept {
    if (bit != kNone) fixed[bit / 8] |= std::byte{1} << bit % 8;
  }

  /// Errors: those of SchemaGroups::make.
  Status lay_out(const Grouping& grouping);
  uint64_t hash_of(const std::byte* fixed, const std::byte* base) const noexcept;

  Schema rows_;
  Schema results_;
  std::string format_;
  std::vector<KeyColumn> keys_;
  std::vector<State> states_;
  std::vector<uint32_t> refs_;  // where they lie in the fixed part: those of keys first
  uint32_t key_ref_count_ = 0;
  uint32_t key_at_ = 0;
  uint32_t key_end_ = 0;
  uint32_t width_ = 0;

 private:
  Status add_keys(const Grouping& grouping);
  Status add_states(const Grouping& grouping);
  Status add_results(const Grouping& grouping);
  void place();
  uint64_t hash_of(const KeyColumn& key, const std::byte* fixed,
                   const std::byte* base) const noexcept;
  Value key_value(const KeyColumn& key, const GroupRecord& record) const noexcept;
  Result<Value> state_value(const State& state, const Column& result,
                            const GroupRecord& record) const;
};

/// What an aggregation knows of its groups (see detail::TypedGroups), of columns that a Grouping
/// names.
///
/// Threads: those of the worker.
class SchemaGroups : public GroupLayout {
 public:
  using Row = GroupRow;
  using Key = GroupKey;
  using Group = std::byte;
  using Record = GroupRecord;
  using Heap = GroupHeap;
  using Sender = ShuffleSender;

  /// Errors: invalid_argument (a column that does not exist, a function that its column cannot
  /// have, a result that it is not), which names the function or column.
  static Result<SchemaGroups> make(const Grouping& grouping);

  /// Why a sum has failed that has left 128 bits; ok as long as there is none.
  Status overflow() const;

  // --- as they lie in a table

  std::byte* at(std::byte* first, uint64_t number) const noexcept {
    return first + number * width_;
  }
  bool has_key(const std::byte* group, const Heap& heap, const Key& key) const noexcept {
    for (uint32_t at = key_at_; at < key_end_; at += 8) {
      if (load<uint64_t>(group + at) != load<uint64_t>(key.fixed + at)) return false;
    }
    return key_ref_count_ == 0 || has_variable_key(group, heap, key);
  }
  void begin(std::byte* group, Heap& heap, const Key&, const Row& row) const noexcept {
    begin(group, heap, row.record);
  }
  void begin(std::byte* group, Heap& heap, const Record& record) const noexcept;
  void update(std::byte* group, Heap& heap, const Row& row) const noexcept {
    merge(group, heap, row.record);
  }
  void merge(std::byte* group, Heap& heap, const Record& record) const noexcept;
  Record record(const std::byte* group, const Heap& heap) const noexcept {
    return {group, heap.base(), refs_.empty() ? 0 : variable_bytes(group)};
  }
  uint64_t heap_bytes(const Record& record) const noexcept {
    return refs_.size() == key_ref_count_ ? record.variable_bytes
                                          : 2 * record.variable_bytes + kLeastRoom * refs_.size();
  }
  uint64_t heap_bytes(const Row& row) const noexcept { return heap_bytes(row.record); }
  uint64_t heap_bytes(std::span<const Row> rows) const noexcept {
    uint64_t bytes = 0;
    for (const Row& row : rows) bytes += heap_bytes(row);
    return bytes;
  }
  void move_heap(std::byte* group, const Heap& from, Heap& to) const noexcept;

  // --- keys

  Key key(const Row& row) const noexcept { return {row.record.fixed, row.record.base, row.hash}; }
  Key key_of(const Record& record) const noexcept {
    return {record.fixed, record.base, hash_of(record.fixed, record.base)};
  }
  static uint64_t hash(const Key& key) noexcept { return key.hash; }

  // --- as they are sent

  size_t bytes(const Record& record) const noexcept { return width_ + record.variable_bytes; }
  size_t row_bytes(const Row& row) const noexcept { return bytes(row.record); }
  void write(const Record& record, std::byte* to) const noexcept;
  void write_row(const Row& row, std::byte* to) const noexcept { write(row.record, to); }
  template <typename KeyOf, typename Bytes, typename Fill>
  Sent send(const Sender& sender, size_t count, KeyOf key, Bytes bytes_of, Fill fill) const {
    Sent sent{0, Outcome::done};
    for (; sent.rows < count; ++sent.rows) {
      const size_t row = sent.rows;
      const uint32_t receiver = partition(key(row).hash, sender.receiver_count());
      const auto write = [&](std::byte* to) { fill(row, to); };
      sent.outcome = sender.write(receiver, bytes_of(row), write, Wait::none());
      if (sent.outcome != Outcome::done) break;
    }
    return sent;
  }

  // --- as they arrive and are kept

  template <typename Keep>
  bool each_received(const Batch& batch, detail::OperatorPart& part, const Keep& keep) const {
    for (const std::span<const std::byte> row : batch.each_row()) {
      const std::optional<Record> record = received(row);
      if (!record) {
        (void)part.fail(no_record(row.size()));
        return false;
      }
      if (!keep(*record)) return false;
    }
    return true;
  }
  bool append(detail::PartitionStore& store, uint32_t partition, const Record& record) const {
    std::byte* const to = store.place(partition, bytes(record));
    if (to == nullptr) return false;
    write(record, to);
    return true;
  }
  Record first_of(std::span<const std::byte> kept) const noexcept {
    return {kept.data(), kept.data() + width_, refs_.empty() ? 0 : variable_bytes(kept.data())};
  }

  // --- as a stage

  uint32_t shuffle_row_bytes() const noexcept { return refs_.empty() ? width_ : 0; }
  static Result<Sender> sender(Shuffle& shuffle) { return shuffle.sender(); }

 private:
  // Room of a value that may become longer.
  static constexpr uint64_t kLeastRoom = 8;

  bool has_variable_key(const std::byte* group, const Heap& heap, const Key& key) const noexcept;
  uint64_t variable_bytes(const std::byte* fixed) const noexcept;
  void merge_bytes(const State& state, std::byte* group, Heap& heap,
                   const Record& record) const noexcept;
  bool replaces(const State& state, std::byte* group, const std::byte* fixed) const noexcept;
  std::optional<Record> received(std::span<const std::byte> row) const noexcept;
  static Status no_record(size_t bytes);

  mutable std::vector<std::byte> copy_;  // the fixed part of what has come last
  mutable const State* overflowed_ = nullptr;
};

}  // namespace faro::operators
