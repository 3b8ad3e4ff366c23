// Batch: rows that were received.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "faro/status.h"

#pragma GCC visibility push(default)

namespace faro {

namespace shuffle {
class StageReceiver;
}

/// Rows that were received, where they lie: in the ring, or in memory if they were spilled.
///
/// Threads: those of its worker. Owns: the frame until release(), detach() or destruction. Held
/// batches keep their sender's ring from moving on: release soon. A worker that holds some never
/// waits: what would wait answers Outcome::holding. A peer on the same machine could change the
/// bytes while they are read (native/DESIGN.md#inv-6): load a length once.
class Batch {
 public:
  Batch() = default;
  Batch(Batch&& other) noexcept { *this = std::move(other); }
  Batch& operator=(Batch&& other) noexcept {
    if (this != &other) {
      release();
      receiver_ = std::exchange(other.receiver_, nullptr);
      frame_ = std::exchange(other.frame_, nullptr);
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
      row_count_ = std::exchange(other.row_count_, 0);
      row_bytes_ = other.row_bytes_;
      sender_ = other.sender_;
    }
    return *this;
  }
  ~Batch() {
    if (frame_ != nullptr) end();
  }

  /// The worker that sent the rows: its index in ShuffleSpec::senders. With all workers as senders
  /// that is its number.
  uint32_t sender() const noexcept { return sender_; }
  uint32_t row_count() const noexcept { return row_count_; }
  bool empty() const noexcept { return frame_ == nullptr; }
  /// Width of each row; 0: each row has its length in front. A row that is too large for a frame
  /// comes alone, with its own width, also where the others have a length each.
  uint32_t row_bytes() const noexcept { return row_bytes_; }

  /// All rows as bytes; for rows with a length each, including the lengths (4 bytes each).
  std::span<const std::byte> bytes() const noexcept { return {data_, bytes_}; }

  /// The rows of a fixed-width shuffle. A Row of another width than row_bytes() is a mistake that
  /// must not pass for "no rows": the query fails on every participant with query_failed, which
  /// names both widths, and no rows are returned.
  template <typename Row>
  std::span<const Row> rows() const noexcept {
    static_assert(std::is_trivially_copyable_v<Row> && alignof(Row) <= 16);
    if (sizeof(Row) != row_bytes_) [[unlikely]] {
      fail_query_by_width(sizeof(Row));
      return {};
    }
    return {reinterpret_cast<const Row*>(data_), row_count_};
  }

  /// Iterates the rows of a shuffle with row_bytes 0; also fixed-width rows, as bytes.
  class RowIterator {
   public:
    std::span<const std::byte> operator*() const noexcept { return row_; }
    RowIterator& operator++() noexcept {
      if (row_bytes_ == 0) return load(), *this;
      row_ = {row_.data() + row_bytes_, row_bytes_};
      --left_;
      return *this;
    }
    /// Two of one batch are equal if as many rows are left.
    bool operator==(const RowIterator& other) const noexcept { return left_ == other.left_; }

   private:
    friend class Batch;
    // The next row, with its length in front. left_ counts the row that is loaded: the last ++
    // brings it to 0. Lengths are loaded once and checked: a peer on the same machine could change
    // them meanwhile.
    void load() noexcept {
      if (left_ > 0) --left_;
      if (left_ == 0) return;
      const auto available = static_cast<size_t>(end_ - at_);
      uint32_t length = 0;
      if (available >= sizeof length) std::memcpy(&length, at_, sizeof length);
      if (available < sizeof length || available - sizeof length < length) {
        left_ = 0;
        return;
      }
      row_ = {at_ + sizeof length, length};
      at_ += sizeof length + length;
    }
    const std::byte* at_ = nullptr;
    const std::byte* end_ = nullptr;
    std::span<const std::byte> row_;
    uint32_t left_ = 0;       // rows from this one on
    uint32_t row_bytes_ = 0;  // 0: each row has a length
  };
  struct RowRange {
    RowIterator first, last;
    RowIterator begin() const noexcept { return first; }
    RowIterator end() const noexcept { return last; }
  };
  /// Valid as long as the batch holds the rows.
  RowRange each_row() const noexcept;

  /// Sets to[i] to where row i begins in bytes(), its length included, and to[row_count()] to where
  /// the last one ends. So the bytes of row i lie from to[i] (if row_bytes() is 0: from to[i] + 4)
  /// up to to[i + 1]. Lengths are read once, and checked to lie within bytes(): what is read by
  /// these offsets is safe, also if a peer on the same machine changes the bytes meanwhile. Answers
  /// how many rows there are offsets for: row_count(), or one less than `to` has places if these
  /// are fewer; less only if such a peer has changed lengths. Blocks: never.
  uint32_t offsets(std::span<uint32_t> to) const noexcept;

  /// Gives the memory back. Idempotent; the batch is empty then.
  void release() noexcept {
    if (frame_ != nullptr) release_frame();
  }

  /// Copies the rows to overflow, so that the ring can move on while they are kept; for merging.
  /// The copy counts against the overflow budget. Errors: limit_exceeded, wrong_state,
  /// session_closed: the batch then stays as it is; the query's failure if there is no memory.
  Status detach();

 private:
  friend class shuffle::StageReceiver;
  void release_frame() noexcept;
  /// What the destructor does: it releases the frame, except in a forked child, where the frame
  /// stays its parent's.
  void end() noexcept;
  void fail_query_by_width(size_t bytes) const noexcept;

  shuffle::StageReceiver* receiver_ = nullptr;
  void* frame_ = nullptr;  // shuffle/receive/in_ring.h
  const std::byte* data_ = nullptr;
  uint32_t row_count_ = 0;
  uint32_t row_bytes_ = 0;
  uint32_t sender_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace faro

#pragma GCC visibility pop
