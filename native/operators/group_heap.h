// GroupHeap: what groups of a schema have of variable width.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "faro/detail/operator_part.h"

namespace faro::operators {

/// The bytes of variable width of the groups of one table, in memory of the operator. A value that
/// becomes longer moves; what it leaves is given up, and is no more when the heap is next enlarged,
/// for which all groups move to a new one.
///
/// Threads: those of the worker. Owns: its memory, until destruction.
class GroupHeap {
 public:
  /// The first one. It is part of the reserve of an operator.
  static constexpr uint64_t kLeastBytes = uint64_t{64} << 10;
  /// An offset has 32 bits.
  static constexpr uint64_t kMostBytes = uint64_t{2} << 30;

  explicit GroupHeap(detail::OperatorPart& part) : part_(part) {}
  ~GroupHeap() { let_go(); }
  GroupHeap(const GroupHeap&) = delete;
  GroupHeap& operator=(const GroupHeap&) = delete;

  const std::byte* base() const noexcept { return memory_; }
  uint64_t room() const noexcept { return room_; }
  bool has_room(uint64_t bytes) const noexcept { return bytes <= room_ - used_; }

  /// Makes room for as many bytes in a heap of at most `most`. `spills`: partitions are spilled for
  /// it, if need be. keep(larger) moves all groups. False: there is no memory, and nothing has
  /// changed.
  template <typename Keep>
  bool grow(uint64_t bytes, bool spills, uint64_t most, const Keep& keep) {
    if (has_room(bytes)) return true;
    const uint64_t live = used_ - given_up_;
    uint64_t room = std::max(kLeastBytes, room_);
    while (live + bytes > room || (room == room_ && given_up_ < room_ / 2)) room *= 2;
    if (room > std::min(most, kMostBytes)) return false;
    if (spills ? !part_.take(room) : !part_.try_take(room)) return false;
    GroupHeap larger(part_);
    larger.memory_ = static_cast<std::byte*>(::operator new(room, std::nothrow));
    if (larger.memory_ == nullptr) {
      part_.give(room);
      return false;
    }
    larger.room_ = room;
    if (used_ > 0) keep(larger);
    std::swap(memory_, larger.memory_);
    std::swap(room_, larger.room_);
    used_ = larger.used_;
    given_up_ = 0;
    return true;
  }

  /// Copies bytes to where there is room, `room` of it. Answers their offset.
  uint32_t add(const std::byte* from, uint32_t bytes, uint64_t room) noexcept {
    const auto at = static_cast<uint32_t>(used_);
    if (bytes > 0) std::memcpy(memory_ + at, from, bytes);
    used_ += room;
    return at;
  }
  void write(uint32_t at, const std::byte* from, uint32_t bytes) noexcept {
    if (bytes > 0) std::memcpy(memory_ + at, from, bytes);
  }
  /// Something of that room is not used any more.
  void give_up(uint64_t room) noexcept { given_up_ += room; }

  void clear() noexcept { used_ = given_up_ = 0; }
  void let_go() noexcept {
    clear();
    if (room_ == 0) return;
    ::operator delete(std::exchange(memory_, nullptr));
    part_.give(std::exchange(room_, 0));
  }

 private:
  detail::OperatorPart& part_;
  std::byte* memory_ = nullptr;
  uint64_t room_ = 0;
  uint64_t used_ = 0;
  uint64_t given_up_ = 0;  // of what is used
};

}  // namespace faro::operators
