#include "shuffle/send/open_frame.h"

#include <utility>

#include "shuffle/send/out_ring.h"

namespace faro::shuffle {

using wire::FrameHeader;

OpenFrame::OpenFrame(OpenFrame&&) noexcept = default;
OpenFrame::~OpenFrame() = default;

void OpenFrame::open_in_ring(std::byte* begin, size_t bytes) noexcept {
  begin_ = begin;
  cursor_ = {begin + sizeof(FrameHeader), begin + bytes};
}

void OpenFrame::open_in_overflow(std::unique_ptr<QueuedFrame> frame, size_t bytes) noexcept {
  in_overflow_ = std::move(frame);
  open_in_ring(in_overflow_->stored.memory, bytes);
}

void OpenFrame::write(std::span<const std::byte> row) noexcept {
  if (row_bytes_ == 0) {
    const auto length = static_cast<wire::RowLength>(row.size());
    std::memcpy(cursor_.at, &length, sizeof length);
    cursor_.at += sizeof length;
    ++row_count_;
  }
  if (!row.empty()) std::memcpy(cursor_.at, row.data(), row.size());
  cursor_.at += row.size();
}

std::span<std::byte> OpenFrame::claim(size_t bytes) noexcept {
  // The inlined paths must not write where the row lies.
  claimed_end_ = std::exchange(cursor_.end, cursor_.at);
  return {cursor_.at + (row_bytes_ == 0 ? sizeof(wire::RowLength) : 0), bytes};
}

void OpenFrame::commit(size_t bytes) noexcept {
  unclaim();
  if (row_bytes_ == 0) {
    const auto length = static_cast<wire::RowLength>(bytes);
    std::memcpy(cursor_.at, &length, sizeof length);
    cursor_.at += sizeof length;
    ++row_count_;
  }
  cursor_.at += bytes;
}

void OpenFrame::unclaim() noexcept { cursor_.end = std::exchange(claimed_end_, nullptr); }

uint32_t OpenFrame::payload_bytes() const noexcept {
  return static_cast<uint32_t>(cursor_.at - begin_) - static_cast<uint32_t>(sizeof(FrameHeader));
}

std::unique_ptr<QueuedFrame> OpenFrame::close(uint16_t slot, uint32_t& length) noexcept {
  length = static_cast<uint32_t>(cursor_.at - begin_);
  FrameHeader header{};
  header.length = length;
  header.kind = wire::FrameKind::data;
  header.slot = slot;
  header.row_count = rows();
  std::memcpy(begin_, &header, sizeof header);
  std::unique_ptr<QueuedFrame> queued = std::move(in_overflow_);
  if (queued != nullptr) {
    queued->row_count = header.row_count;
    queued->payload_bytes = payload_bytes();
  }
  abandon();
  return queued;
}

void OpenFrame::abandon() noexcept {
  cursor_ = {};
  begin_ = nullptr;
  claimed_end_ = nullptr;
  row_count_ = 0;
  in_overflow_.reset();
}

}  // namespace faro::shuffle
