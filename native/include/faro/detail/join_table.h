// JoinTable: build rows of a join by the hash of their key, in memory of an operator. Not part of
// the API.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "faro/detail/operator_part.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// A table of chains. The rows lie one after the other in the order in which they were added, each
/// with the number of the next one of its chain, so that a row and where to go on are one miss.
///
/// Threads: those of the worker. Owns: its memory, until destruction.
template <typename Row>
class JoinTable {
 public:
  static_assert(std::is_trivially_copyable_v<Row>);
  struct Node {
    Row row;
    uint32_t link;  // the number + 1 of the next node of the chain, or 0; and kMatched
  };
  /// The row has matched.
  static constexpr uint32_t kMatched = uint32_t{1} << 31;

  static constexpr uint64_t kMostRows = kMatched - 1;
  static constexpr uint64_t bytes(uint64_t rows) noexcept {
    return rows * sizeof(Node) + places(rows) * sizeof(uint32_t);
  }
  /// As many rows as have no more than these bytes.
  static constexpr uint64_t rows_of(uint64_t bytes) noexcept {
    return std::min(kMostRows, bytes / (sizeof(Node) + 2 * kPlacesOfRow * sizeof(uint32_t)));
  }

  /// `room`: what else the operator may need as long as there is a table.
  JoinTable(OperatorPart& part, uint64_t room) : part_(part), room_(room) {}
  ~JoinTable() { let_go(); }
  JoinTable(const JoinTable&) = delete;
  JoinTable& operator=(const JoinTable&) = delete;

  uint64_t size() const noexcept { return size_; }
  uint64_t capacity() const noexcept { return capacity_; }
  /// Empties it, and makes room for `rows` rows. False: there is no memory, and it has none.
  bool begin(uint64_t rows) {
    if (rows > capacity_ || capacity_ == 0) {
      let_go();
      if (!allocate(std::max<uint64_t>(rows, 1))) return false;
    }
    size_ = 0;
    const uint64_t count = places(std::max<uint64_t>(rows, 1));
    mask_ = count - 1;
    std::memset(heads_, 0, count * sizeof(uint32_t));
    return true;
  }
  /// Makes room for as many rows in all, of which each gets its place by mixed_of(row). False:
  /// there is no memory but what would be had by spilling, and all is as it was.
  template <typename MixedOf>
  bool grow(uint64_t rows, MixedOf mixed_of) {
    if (rows <= capacity_) return true;
    if (rows > kMostRows || !part_.try_take(bytes(rows), room_)) return false;
    JoinTable larger(part_, room_);
    if (!larger.allocate_taken(rows)) return false;
    (void)larger.begin(rows);
    for (uint64_t i = 0; i < size_; ++i)
      larger.add(nodes_[i].row, mixed_of(nodes_[i].row), (nodes_[i].link & kMatched) != 0);
    std::swap(nodes_, larger.nodes_);
    std::swap(heads_, larger.heads_);
    std::swap(size_, larger.size_);
    std::swap(capacity_, larger.capacity_);
    std::swap(mask_, larger.mask_);
    return true;
  }
  /// Gives its memory back.
  void let_go() noexcept {
    if (capacity_ == 0) return;
    ::operator delete(std::exchange(nodes_, nullptr), kAligned);
    ::operator delete(std::exchange(heads_, nullptr), kAligned);
    part_.give(bytes(std::exchange(capacity_, 0)));
    size_ = mask_ = 0;
  }

  /// For which there is room.
  void add(const Row& row, uint64_t mixed, bool is_matched) noexcept {
    uint32_t& head = heads_[mixed & mask_];
    new (nodes_ + size_) Node{row, head | (is_matched ? kMatched : 0)};
    head = static_cast<uint32_t>(++size_);
  }
  Node& node(uint64_t index) noexcept { return nodes_[index]; }

  /// A table as a local variable, whose members a compiler keeps in registers while results are
  /// written. Valid until `begin` or `let_go`.
  struct View {
    Node* nodes;
    const uint32_t* heads;
    uint64_t mask;

    /// The number + 1 of the first node of a chain, or 0.
    uint32_t first(uint64_t mixed) const noexcept { return heads[mixed & mask]; }
  };
  View view() const noexcept { return {nodes_, heads_, mask_}; }

 private:
  static constexpr std::align_val_t kAligned{64};
  // At least: most chains have one row, and the branch after it is foreseen.
  static constexpr uint64_t kPlacesOfRow = 2;
  static constexpr uint64_t places(uint64_t rows) noexcept {
    return std::bit_ceil(rows * kPlacesOfRow);
  }

  bool allocate(uint64_t rows) {
    return rows <= kMostRows && part_.take(bytes(rows), room_) && allocate_taken(rows);
  }
  /// For which memory of the operator was taken.
  bool allocate_taken(uint64_t rows) {
    nodes_ = static_cast<Node*>(::operator new(rows * sizeof(Node), kAligned, std::nothrow));
    heads_ = static_cast<uint32_t*>(
        ::operator new(places(rows) * sizeof(uint32_t), kAligned, std::nothrow));
    capacity_ = rows;
    if (nodes_ != nullptr && heads_ != nullptr) return true;
    let_go();
    return false;
  }

  OperatorPart& part_;
  const uint64_t room_;
  Node* nodes_ = nullptr;
  uint32_t* heads_ = nullptr;
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
  uint64_t mask_ = 0;
};

}  // namespace faro::detail

#pragma GCC visibility pop
