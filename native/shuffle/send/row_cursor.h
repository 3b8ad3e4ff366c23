// RowCursor: where the next row of a frame goes that is being filled, and what has come before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "faro/detail/scatter.h"
#include "shuffle/send/row_pieces.h"
#include "wire/frame.h"

namespace faro::shuffle {

/// The inlined paths of faro/sender.h write at its cursor, and count rows with a length each. Where no frame
/// is open, or a row of it is claimed, the cursor has no room, so these paths need to look at nothing else.
///
/// Threads: the worker.
class RowCursor {
 public:
  /// `row_bytes`: as ShuffleSpec has it.
  RowCursor(uint32_t row_bytes, detail::FrameCursor& at, uint32_t& counted) noexcept
      : row_bytes_(row_bytes), cursor_(at), row_count_(counted) {}

  /// Whether a row that takes that many bytes finds room.
  bool has_room(uint64_t bytes) const noexcept {
    return static_cast<size_t>(cursor_.end - cursor_.at) >= bytes;
  }

  /// Rows go into the frame of `bytes` bytes at `begin`, its header included.
  void open(std::byte* begin, uint64_t bytes) noexcept {
    cursor_ = {begin + sizeof(wire::FrameHeader), begin + bytes};
  }
  /// Also ends a claim.
  void close() noexcept {
    cursor_ = {};
    row_count_ = 0;
    claimed_end_ = nullptr;
  }
  /// The bytes of rows in the frame, which begins at `begin`.
  uint32_t payload_from(const std::byte* begin) const noexcept {
    return static_cast<uint32_t>(cursor_.at - begin) -
           static_cast<uint32_t>(sizeof(wire::FrameHeader));
  }
  uint32_t rows_in(uint32_t payload) const noexcept {
    return row_bytes_ == 0 ? row_count_ : payload / row_bytes_;
  }

  /// Writes a row for which there is room.
  void append(const RowPieces& row) noexcept {
    write_length(row.bytes());
    row.copy_to(cursor_.at);
    cursor_.at += row.bytes();
  }
  /// The place of the next row, of `bytes` bytes, for which there is room. The inlined paths must not write there, so
  /// they find no room until the claim ends.
  std::span<std::byte> claim(size_t bytes) noexcept {
    claimed_end_ = std::exchange(cursor_.end, cursor_.at);
    const size_t before = row_bytes_ == 0 ? sizeof(wire::RowLength) : 0;
    return {cursor_.at + before, bytes};
  }
  bool is_claimed() const noexcept { return claimed_end_ != nullptr; }
  /// Ends the claim: of the row that was written there the first `bytes` bytes count.
  void commit(size_t bytes) noexcept {
    unclaim();
    write_length(bytes);
    cursor_.at += bytes;
  }
  /// Ends the claim: there was no row.
  void unclaim() noexcept { cursor_.end = std::exchange(claimed_end_, nullptr); }

 private:
  void write_length(size_t bytes) noexcept {
    if (row_bytes_ != 0) return;
    const auto length = static_cast<wire::RowLength>(bytes);
    std::memcpy(cursor_.at, &length, sizeof length);
    cursor_.at += sizeof length;
    ++row_count_;
  }

  const uint32_t row_bytes_;
  detail::FrameCursor& cursor_;
  uint32_t& row_count_;
  std::byte* claimed_end_ = nullptr;  // where its room ends, while a claim hides it
};

}  // namespace faro::shuffle
