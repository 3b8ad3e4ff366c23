// GroupTable: groups by key, in memory of an operator. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "faro/detail/operator_part.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// An open-addressed table. The groups lie one after the other in the order in which they came; the
/// places of the index have their numbers. `Groups` says what a group is: TypedGroups, or groups of
/// a schema, which may have bytes of variable width beside the table (Groups::Heap).
///
/// Threads: those of the worker. Owns: its memory, until destruction.
template <typename Groups>
class GroupTable {
 public:
  using Group = typename Groups::Group;
  using Key = typename Groups::Key;
  using Record = typename Groups::Record;

  static constexpr uint64_t kMostStates = uint64_t{1} << 31;
  /// Without the heap.
  static constexpr uint64_t bytes(const Groups& groups, uint64_t states) noexcept {
    return states * groups.width() + places(states) * sizeof(uint32_t);
  }

  GroupTable(OperatorPart& part, const Groups& groups) : part_(part), kind_(groups), heap_(part) {}
  ~GroupTable() { let_go(); }
  GroupTable(const GroupTable&) = delete;
  GroupTable& operator=(const GroupTable&) = delete;

  uint64_t size() const noexcept { return size_; }
  /// A power of two, or 0.
  uint64_t capacity() const noexcept { return capacity_; }
  /// The first of its groups.
  Group* groups() const noexcept { return groups_; }
  /// A group as it is sent, kept by partition and handed out. Valid until the table changes.
  decltype(auto) record(uint64_t number) const noexcept {
    return kind_.record(kind_.at(groups_, number), heap_);
  }
  /// What it takes of the memory, its heap included.
  uint64_t memory_bytes() const noexcept {
    return (capacity_ == 0 ? 0 : bytes(kind_, capacity_)) + heap_.room();
  }

  /// Where memory for a table comes from.
  enum class From : uint8_t {
    left,     // what is left
    spilled,  // partitions are spilled for it, if need be
  };
  /// Makes room for `states` groups, a power of two and at least as many as there are, which stay.
  /// mixed(record) is the hash by which it was found. False: there is no memory, and nothing has
  /// changed.
  template <typename Mixed>
  bool resize(uint64_t states, From from, Mixed mixed) {
    const uint64_t needed = bytes(kind_, states);
    if (from == From::left ? !part_.try_take(needed) : !part_.take(needed)) return false;
    auto* const groups =
        static_cast<Group*>(::operator new(states* kind_.width(), kAligned, std::nothrow));
    auto* const index = static_cast<uint32_t*>(std::calloc(places(states), sizeof(uint32_t)));
    if (groups == nullptr || index == nullptr) {
      ::operator delete(groups, kAligned);
      std::free(index);
      part_.give(needed);
      return false;
    }
    if (size_ > 0) std::memcpy(static_cast<void*>(groups), groups_, size_ * kind_.width());
    const uint64_t size = size_;
    let_go_of_groups();
    groups_ = groups;
    index_ = index;
    capacity_ = states;
    mask_ = places(states) - 1;
    for (size_ = 0; size_ < size;) {
      uint64_t place = mixed(record(size_)) & mask_;
      while (index_[place] != 0) place = (place + 1) & mask_;
      index_[place] = static_cast<uint32_t>(++size_);
    }
    return true;
  }
  void clear() noexcept {
    if (size_ > 0) std::memset(index_, 0, (mask_ + 1) * sizeof(uint32_t));
    size_ = 0;
    heap_.clear();
  }
  /// Gives its memory back.
  void let_go() noexcept {
    let_go_of_groups();
    heap_.let_go();
  }

  /// Whether the heap has room for what is variable in one record, or in a row, or in several rows.
  bool has_heap_for(const auto& one) const noexcept {
    return heap_.has_room(kind_.heap_bytes(one));
  }
  /// Makes room for that, but no heap above `most` bytes. False: there is none, and nothing has
  /// changed.
  bool make_heap_for(const auto& one, From from, uint64_t most) {
    const auto keep = [this](auto& larger) {
      for (uint64_t i = 0; i < size_; ++i) kind_.move_heap(kind_.at(groups_, i), heap_, larger);
    };
    return heap_.grow(kind_.heap_bytes(one), from == From::spilled, most, keep);
  }

  void prefetch(uint64_t mixed) const noexcept { __builtin_prefetch(index_ + (mixed & mask_)); }
  /// After the place has been prefetched: the group that is likely meant.
  void prefetch_group(uint64_t mixed) const noexcept {
    __builtin_prefetch(kind_.at(groups_, index_[mixed & mask_] - uint64_t{1}));
  }

  /// A table as a local variable, whose members a compiler keeps in registers while groups are
  /// written. Valid until the table is resized.
  struct View {
    Group* groups;
    const uint32_t* index;
    uint64_t mask;
    const Groups& kind;
    const typename Groups::Heap& heap;

    /// The group with that key, or null: then `place` is where it belongs.
    Group* find(const Key& key, uint64_t mixed, uint64_t& place) const noexcept {
      for (place = mixed & mask;; place = (place + 1) & mask) {
        const uint32_t number = index[place];
        if (number == 0) return nullptr;
        Group* const group = kind.at(groups, number - 1);
        if (kind.has_key(group, heap, key)) [[likely]]
          return group;
      }
    }
  };
  View view() const noexcept { return {groups_, index_, mask_, kind_, heap_}; }

  /// Adds a group that begins with a row where `find` has not found its key; false: the table is
  /// full. The heap has room for it.
  bool add(const Key& key, const typename Groups::Row& row, uint64_t place) noexcept {
    if (size_ == capacity_) return false;
    index_[place] = static_cast<uint32_t>(size_ + 1);
    kind_.begin(kind_.at(groups_, size_++), heap_, key, row);
    return true;
  }
  /// Adds a group that begins with a record, where there is room for one.
  void add(const Record& record, uint64_t place) noexcept {
    index_[place] = static_cast<uint32_t>(size_ + 1);
    kind_.begin(kind_.at(groups_, size_++), heap_, record);
  }
  void update(Group* group, const typename Groups::Row& row) noexcept {
    kind_.update(group, heap_, row);
  }
  void merge(Group* group, const Record& record) noexcept { kind_.merge(group, heap_, record); }

 private:
  static constexpr std::align_val_t kAligned{64};
  /// Places for as many groups: a chain costs a branch that is not foreseen, which small tables can
  /// spare; of large ones each miss costs more.
  static constexpr uint64_t places(uint64_t states) noexcept {
    constexpr uint64_t kSmall = uint64_t{16} << 10, kLarge = uint64_t{256} << 10;
    return states * (states <= kSmall ? 8 : states <= kLarge ? 4 : 2);
  }

  void let_go_of_groups() noexcept {
    if (capacity_ == 0) return;
    ::operator delete(std::exchange(groups_, nullptr), kAligned);
    std::free(std::exchange(index_, nullptr));
    part_.give(bytes(kind_, std::exchange(capacity_, 0)));
    size_ = mask_ = 0;
  }

  OperatorPart& part_;
  const Groups& kind_;
  typename Groups::Heap heap_;
  Group* groups_ = nullptr;
  uint32_t* index_ = nullptr;  // 0, or the number of a group + 1
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
  uint64_t mask_ = 0;
};

}  // namespace faro::detail

#pragma GCC visibility pop
