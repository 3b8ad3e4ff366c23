// The loops that put many rows behind the cursors of their receivers: what RowSender inlines into
// its caller. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "faro/hash.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// Where the next row for one receiver goes; at == end when there is no open frame. The worker's
/// alone.
struct FrameCursor {
  std::byte* at = nullptr;
  std::byte* end = nullptr;
};

/// Puts rows of 8 bytes at the cursors of their receivers: the first ones, until some receiver's
/// room is short or fewer than a vector are left; returns how many.
using WordScatter = size_t (*)(const void* rows, const uint32_t* receivers, size_t count,
                               FrameCursor* cursors) noexcept;

/// The loops of one way to send many rows: blocks of them, first hashed, then scattered.
struct BlockKernel {
  using Partition = void (*)(const uint64_t* keys, size_t count, uint32_t receiver_count,
                             uint32_t* receivers) noexcept;
  static constexpr size_t kWordReceivers = 7;

  Partition partition = nullptr;
  WordScatter words[kWordReceivers] = {};  // by number of receivers; null: row by row
};

/// Which way a shuffle's rows take, by hash; null: one pass over the rows, one by one.
struct SendKernels {
  const BlockKernel* finalizer = nullptr;
  const BlockKernel* multiplicative = nullptr;

  const BlockKernel* of(FinalizerHash) const noexcept { return finalizer; }
  const BlockKernel* of(MultiplicativeHash) const noexcept { return multiplicative; }
  template <typename Hash>
  const BlockKernel* of(Hash) const noexcept {
    return nullptr;  // a hash of the user's own is no loop of ours
  }
};

/// Copies a row behind the last one of its receiver; false: there is no room for it.
template <typename Row>
inline bool put_row(FrameCursor& cursor, const Row& row) noexcept {
  std::byte* const at = cursor.at;
  if (static_cast<size_t>(cursor.end - at) < sizeof(Row)) [[unlikely]]
    return false;
  cursor.at = at + sizeof(Row);
  std::memcpy(at, &row, sizeof(Row));
  return true;
}

/// Puts rows[i] at the cursor of partition(hash(key(rows[i])), receiver_count). For a row without
/// room it calls slow(receiver, row), which sends it, or answers false: that ends it. Returns how
/// many were sent.
template <typename Row, typename Hash, typename Key, typename Slow>
size_t scatter_one_by_one(std::span<const Row> rows, Hash hash, Key key, uint32_t receiver_count,
                          FrameCursor* cursors, Slow slow) noexcept {
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t receiver = faro::partition(hash(key(rows[i])), receiver_count);
    if (!put_row(cursors[receiver], rows[i])) [[unlikely]] {
      if (!slow(receiver, rows[i])) return i;
    }
  }
  return rows.size();
}

/// Puts rows[i] at the cursor of the receiver that `kernel` computes for key(rows[i]), by the loops
/// of `kernel`, which are those of the shuffle's hash. For a row without room it calls
/// slow(receiver, row), which sends it, or answers false: that ends it. Returns how many were sent.
template <typename Row, typename Key, typename Slow>
size_t scatter_in_blocks(const BlockKernel& kernel, std::span<const Row> rows, Key key,
                         uint32_t receiver_count, FrameCursor* cursors, Slow slow) noexcept {
  constexpr size_t kBlock = 256;   // keys and receivers of a block: 3 KiB of stack, in L1
  constexpr size_t kBetween = 16;  // rows put one by one where a vector of them found no room
  uint64_t keys[kBlock];
  uint32_t receivers[kBlock];
  WordScatter words = nullptr;
  if constexpr (sizeof(Row) == sizeof(uint64_t)) {
    if (receiver_count < BlockKernel::kWordReceivers) words = kernel.words[receiver_count];
  }
  for (size_t begin = 0; begin < rows.size(); begin += kBlock) {
    const size_t count = rows.size() - begin < kBlock ? rows.size() - begin : kBlock;
    const Row* const block = rows.data() + begin;
    for (size_t i = 0; i < count; ++i) keys[i] = key(block[i]);
    kernel.partition(keys, count, receiver_count, receivers);
    for (size_t i = 0; i < count;) {
      size_t end = count;
      if (words != nullptr) {
        i += words(block + i, receivers + i, count - i, cursors);
        end = count - i < kBetween ? count : i + kBetween;
      }
      for (; i < end; ++i) {
        if (!put_row(cursors[receivers[i]], block[i])) [[unlikely]] {
          if (!slow(receivers[i], block[i])) return begin + i;
        }
      }
    }
  }
  return rows.size();
}

/// Lets fill(i, to) write row i behind the last one of partition(hash(key(i)), receiver_count), for
/// all i in order. Where there is no room it calls slow(receiver, row) with a row that was written
/// elsewhere; slow sends it, or answers false: that ends it. Returns how many were sent.
template <typename Row, typename Hash, typename Key, typename Fill, typename Slow>
size_t write_one_by_one(size_t count, Hash hash, Key& key, Fill& fill, uint32_t receiver_count,
                        FrameCursor* cursors, Slow slow) {
  alignas(Row) std::byte scratch[sizeof(Row)];
  for (size_t i = 0; i < count; ++i) {
    const uint32_t receiver = faro::partition(hash(key(i)), receiver_count);
    FrameCursor& cursor = cursors[receiver];
    std::byte* const at = cursor.at;
    const bool has_room = static_cast<size_t>(cursor.end - at) >= sizeof(Row);
    // One call, whichever it is: a second one costs the loop its registers.
    fill(i, has_room ? at : scratch);
    if (has_room) [[likely]] {
      cursor.at = at + sizeof(Row);
    } else if (!slow(receiver, scratch)) {
      return i;
    }
  }
  return count;
}

/// Puts rows[i] at the cursor of partition(hash(key(rows[i])), receiver_count), by the loops of
/// `kernel`, or one by one if it is null. For a row without room it calls slow(receiver, row),
/// which sends it, or answers false: that ends it. Returns how many were sent.
template <typename Row, typename Hash, typename Key, typename Slow>
size_t scatter_rows(const BlockKernel* kernel, std::span<const Row> rows, Hash hash, Key key,
                    uint32_t receiver_count, FrameCursor* cursors, Slow slow) noexcept {
  if (kernel == nullptr) return scatter_one_by_one(rows, hash, key, receiver_count, cursors, slow);
  return scatter_in_blocks(*kernel, rows, key, receiver_count, cursors, slow);
}

}  // namespace faro::detail

#pragma GCC visibility pop
