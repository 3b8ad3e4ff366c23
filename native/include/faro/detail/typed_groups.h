// TypedGroups: groups whose key and state are types of C++. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "faro/batch.h"
#include "faro/detail/operator_hash.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "faro/outcome.h"
#include "faro/sender.h"
#include "faro/shuffle.h"
#include "faro/status.h"
#include "faro/wait.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// A key and its state, as they lie in tables, in partitions and on their way.
template <typename Key, typename State>
struct KeyedState {
  Key key;
  State state;
};

/// Groups that have nothing of variable width.
class NoHeap {
 public:
  static constexpr uint64_t kLeastBytes = 0;

  explicit NoHeap(OperatorPart&) noexcept {}
  static constexpr uint64_t room() noexcept { return 0; }
  static constexpr bool has_room(uint64_t) noexcept { return true; }
  template <typename Keep>
  static constexpr bool grow(uint64_t, bool, uint64_t, const Keep&) noexcept {
    return true;
  }
  static constexpr void clear() noexcept {}
  static constexpr void let_go() noexcept {}
};

/// What an aggregation knows of its rows and groups, for the templates that group them; here of a
/// `What` (faro/aggregate.h). A group lies in a table, a record of it wherever else: here both are
/// the same.
///
/// Threads: those of the worker.
template <typename What>
class TypedGroups {
 public:
  using Row = typename What::Row;
  using Key = typename What::Key;
  using Group = KeyedState<Key, typename What::State>;
  using Record = Group;
  using Heap = NoHeap;
  using Sender = RowSender<Group>;

  explicit TypedGroups(What what) : what_(std::move(what)) {}

  // --- as they lie in a table

  static constexpr uint64_t width() noexcept { return sizeof(Group); }
  static Group* at(Group* first, uint64_t number) noexcept { return first + number; }
  static bool has_key(const Group* group, const Heap&, const Key& key) noexcept {
    return group->key == key;
  }
  void begin(Group* group, Heap&, const Key& key, const Row& row) const noexcept {
    new (group) Group{key, {}};
    what_.add(group->state, row);
  }
  static void begin(Group* group, Heap&, const Record& record) noexcept {
    new (group) Group(record);
  }
  void update(Group* group, Heap&, const Row& row) const noexcept { what_.add(group->state, row); }
  void merge(Group* group, Heap&, const Record& record) const noexcept {
    what_.merge(group->state, record.state);
  }
  static const Record& record(const Group* group, const Heap&) noexcept { return *group; }
  /// What rows and records take of a heap, at most.
  static constexpr uint64_t heap_bytes(const auto&) noexcept { return 0; }
  static void move_heap(Group*, const Heap&, Heap&) noexcept {}

  // --- keys

  decltype(auto) key(const Row& row) const noexcept { return what_.key(row); }
  static const Key& key_of(const Record& record) noexcept { return record.key; }
  uint64_t hash(const Key& key) const noexcept { return hash_of_key(what_, key); }

  // --- as they are sent

  static constexpr size_t bytes(const Record&) noexcept { return sizeof(Group); }
  static constexpr size_t row_bytes(const Row&) noexcept { return sizeof(Group); }
  static void write(const Record& record, std::byte* to) noexcept {
    std::memcpy(to, &record, sizeof record);
  }
  /// The record of one row.
  void write_row(const Row& row, std::byte* to) const noexcept {
    Group group{what_.key(row), {}};
    what_.add(group.state, row);
    std::memcpy(to, &group, sizeof group);
  }
  /// Sends `count` records: record i to the receiver of key(i), by fill(i, to), without waiting.
  template <typename KeyOf, typename Bytes, typename Fill>
  Sent send(const Sender& sender, size_t count, KeyOf key, const Bytes&, Fill fill) const {
    return sender.write_all(
        count, [this](const Key& each) { return hash(each); }, key, fill, Wait::none());
  }

  // --- as they arrive and are kept

  /// Calls keep(record) for each that has come, until it answers false; so does this then.
  template <typename Keep>
  static bool each_received(const Batch& batch, OperatorPart&, const Keep& keep) {
    for (const Group& each : batch.rows<Group>()) {
      Group record;
      std::memcpy(static_cast<void*>(&record), &each, sizeof record);
      if (!keep(record)) [[unlikely]]
        return false;
    }
    return true;
  }
  static bool append(PartitionStore& store, uint32_t partition, const Record& record) {
    return store.append(partition, record);
  }
  /// The first of the records that were kept.
  static Record first_of(std::span<const std::byte> kept) noexcept {
    Group record;
    std::memcpy(static_cast<void*>(&record), kept.data(), sizeof record);
    return record;
  }

  // --- as a stage

  static constexpr uint32_t shuffle_row_bytes() noexcept { return sizeof(Group); }
  static Result<Sender> sender(Shuffle& shuffle) { return shuffle.template sender<Group>(); }

 private:
  const What what_;
};

}  // namespace faro::detail

#pragma GCC visibility pop
