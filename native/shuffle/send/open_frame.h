// OpenFrame: where the next rows of one shuffle for one receiver are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "faro/shuffle.h"
#include "wire/frame.h"

namespace faro::shuffle {

struct QueuedFrame;

///   closed ──open_in_ring──▶ open, in the ring ───────close──▶ to be committed
///          ──open_in_overflow──▶ open, in overflow ───close──▶ to be queued
///   open   ──claim──▶ claimed: a row is being written in place ──unclaim──▶ open
///
/// The inlined paths of faro/sender.h write at its cursor, and count rows with a length each. Where there is no open
/// frame, or it is claimed, the cursor has no room: so these paths need to look at nothing else.
///
/// Threads: the worker.
class OpenFrame {
 public:
  /// `row_bytes`: 0 if rows have a length each; then `row_count` is of those in the open frame.
  OpenFrame(detail::FrameCursor& cursor, uint32_t& row_count, uint32_t row_bytes)
      : cursor_(cursor), row_count_(row_count), row_bytes_(row_bytes) {}
  OpenFrame(OpenFrame&&) noexcept;
  ~OpenFrame();

  bool is_open() const noexcept { return begin_ != nullptr; }
  bool is_in_overflow() const noexcept { return in_overflow_ != nullptr; }
  bool is_row_claimed() const noexcept { return claimed_end_ != nullptr; }

  /// In `bytes` bytes at `begin`, the header included.
  void open_in_ring(std::byte* begin, size_t bytes) noexcept;
  void open_in_overflow(std::unique_ptr<QueuedFrame> frame, size_t bytes) noexcept;

  bool has_room(uint32_t bytes) const noexcept {
    return static_cast<size_t>(cursor_.end - cursor_.at) >= bytes;
  }
  /// Needs room, which a row takes with its length.
  void write(std::span<const std::byte> row) noexcept;

  /// The place of the next row, of `bytes` bytes. Needs room for it with its length.
  std::span<std::byte> claim(size_t bytes) noexcept;
  /// Ends the claim; of the row that was written there the first `bytes` count.
  void commit(size_t bytes) noexcept;
  /// Ends the claim; there was no row.
  void unclaim() noexcept;

  uint32_t payload_bytes() const noexcept;
  uint32_t rows() const noexcept {
    return row_bytes_ == 0 ? row_count_ : payload_bytes() / row_bytes_;
  }
  /// Writes the header; the frame is `length` bytes long. Returns it if it has to be queued, null if it has to be
  /// committed in the ring.
  std::unique_ptr<QueuedFrame> close(uint16_t slot, uint32_t& length) noexcept;
  /// Its rows never existed.
  void abandon() noexcept;

 private:
  detail::FrameCursor& cursor_;
  uint32_t& row_count_;
  const uint32_t row_bytes_;
  std::byte* begin_ = nullptr;  // null: closed
  std::byte* claimed_end_ =
      nullptr;  // of the open frame, while its room is hidden from the inlined paths
  std::unique_ptr<QueuedFrame> in_overflow_;
};

}  // namespace faro::shuffle
