// GroupTable: groups by key, in memory of an operator. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "faro/detail/operator_part.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// A key and its state, as they lie in tables, in partitions and on their way.
template <typename Key, typename State>
struct KeyedState {
  Key key;
  State state;
};

/// An open-addressed table. The groups lie one after the other in the order in which they came, so
/// that they are sent, spilled and handed out as they lie; the places of the index have their
/// numbers.
///
/// Threads: those of the worker. Owns: its memory, until destruction.
template <typename Group>
class GroupTable {
 public:
  static constexpr uint64_t kMostStates = uint64_t{1} << 31;
  static constexpr uint64_t bytes(uint64_t states) noexcept {
    return states * sizeof(Group) + places(states) * sizeof(uint32_t);
  }

  explicit GroupTable(OperatorPart& part) : part_(part) {}
  ~GroupTable() { let_go(); }
  GroupTable(const GroupTable&) = delete;
  GroupTable& operator=(const GroupTable&) = delete;

  uint64_t size() const noexcept { return size_; }
  /// A power of two, or 0.
  uint64_t capacity() const noexcept { return capacity_; }
  std::span<const Group> groups() const noexcept { return {groups_, size_}; }

  /// Where memory for a table comes from.
  enum class From : uint8_t {
    left,     // what is left
    spilled,  // partitions are spilled for it, if need be
  };
  /// Makes room for `states` groups, a power of two and at least as many as there are, which stay.
  /// mixed(group) is the hash by which it was found. False: there is no memory, and nothing has
  /// changed.
  template <typename Mixed>
  bool resize(uint64_t states, From from, Mixed mixed) {
    const uint64_t needed = bytes(states);
    if (from == From::left ? !part_.try_take(needed) : !part_.take(needed)) return false;
    auto* const groups =
        static_cast<Group*>(::operator new(states * sizeof(Group), kAligned, std::nothrow));
    auto* const index = static_cast<uint32_t*>(std::calloc(places(states), sizeof(uint32_t)));
    if (groups == nullptr || index == nullptr) {
      ::operator delete(groups, kAligned);
      std::free(index);
      part_.give(needed);
      return false;
    }
    if (size_ > 0) std::memcpy(static_cast<void*>(groups), groups_, size_ * sizeof(Group));
    const uint64_t size = size_;
    let_go();
    groups_ = groups;
    index_ = index;
    capacity_ = states;
    mask_ = places(states) - 1;
    for (size_ = 0; size_ < size;) {
      uint64_t place = mixed(groups_[size_]) & mask_;
      while (index_[place] != 0) place = (place + 1) & mask_;
      index_[place] = static_cast<uint32_t>(++size_);
    }
    return true;
  }
  void clear() noexcept {
    if (size_ > 0) std::memset(index_, 0, (mask_ + 1) * sizeof(uint32_t));
    size_ = 0;
  }
  /// Gives its memory back.
  void let_go() noexcept {
    if (capacity_ == 0) return;
    ::operator delete(std::exchange(groups_, nullptr), kAligned);
    std::free(std::exchange(index_, nullptr));
    part_.give(bytes(std::exchange(capacity_, 0)));
    size_ = mask_ = 0;
  }

  void prefetch(uint64_t mixed) const noexcept { __builtin_prefetch(index_ + (mixed & mask_)); }
  /// After the place has been prefetched: the group that is likely meant.
  void prefetch_group(uint64_t mixed) const noexcept {
    __builtin_prefetch(groups_ + (index_[mixed & mask_] - 1));
  }

  /// A table as a local variable, whose members a compiler keeps in registers while groups are
  /// written. Valid until the table is resized.
  struct View {
    Group* groups;
    const uint32_t* index;
    uint64_t mask;

    /// The group with that key, or null: then `place` is where it belongs.
    template <typename Key>
    Group* find(const Key& key, uint64_t mixed, uint64_t& place) const noexcept {
      for (place = mixed & mask;; place = (place + 1) & mask) {
        const uint32_t number = index[place];
        if (number == 0) return nullptr;
        if (groups[number - 1].key == key) [[likely]]
          return groups + (number - 1);
      }
    }
  };
  View view() const noexcept { return {groups_, index_, mask_}; }

  /// Adds a group with its first state where `find` has not found it; null: the table is full.
  template <typename Key>
  Group* add(const Key& key, uint64_t place) noexcept {
    if (size_ == capacity_) return nullptr;
    index_[place] = static_cast<uint32_t>(size_ + 1);
    return new (groups_ + size_++) Group{key, {}};
  }

 private:
  static constexpr std::align_val_t kAligned{64};
  /// Places for as many groups: a chain costs a branch that is not foreseen, which small tables can
  /// spare; of large ones each miss costs more.
  static constexpr uint64_t places(uint64_t states) noexcept {
    constexpr uint64_t kSmall = uint64_t{16} << 10, kLarge = uint64_t{256} << 10;
    return states * (states <= kSmall ? 8 : states <= kLarge ? 4 : 2);
  }

  OperatorPart& part_;
  Group* groups_ = nullptr;
  uint32_t* index_ = nullptr;  // 0, or the number of a group + 1
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
  uint64_t mask_ = 0;
};

}  // namespace faro::detail

#pragma GCC visibility pop
