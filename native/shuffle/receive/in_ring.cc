#include "shuffle/receive/in_ring.h"

#include <algorithm>
#include <cstring>

namespace faro::shuffle {

uint64_t room_to_pack(uint64_t room_before, uint64_t bytes) noexcept {
  // The first block for a sender's rows in overflow is small: many senders with few rows each must not take much.
  constexpr uint64_t kFirstBytes = 512;
  const uint64_t wanted =
      std::min(Overflow::kPackedBytes, room_before == 0 ? kFirstBytes : 2 * room_before);
  return bytes < kFirstBytes ? wanted : std::max(wanted / bytes, uint64_t{1}) * bytes;
}

// A fragment begins by saying where in its row it belongs, which is read once.
std::span<const std::byte> MovedFrame::split(const transport::FrameView& frame) noexcept {
  const std::span<const std::byte> bytes(frame.payload, frame.payload_bytes());
  if (frame.header.kind != wire::FrameKind::fragment) return bytes;
  std::memcpy(&part, bytes.data(), sizeof part);
  return bytes.subspan(sizeof part);
}

Status MovedFrame::store(Overflow& overflow, OverflowUsage& usage,
                         const transport::FrameView& frame, uint64_t room) {
  const std::span<const std::byte> bytes = split(frame);
  if (stored.place != Stored::Place::none) return overflow.append(stored, bytes);
  return overflow.store(usage, bytes, std::max(room, bytes.size()), stored);
}

bool MovedFrame::store_if_plenty(Overflow& overflow, OverflowUsage& usage,
                                 const transport::FrameView& frame, uint64_t room) {
  const std::span<const std::byte> bytes = split(frame);
  if (stored.place == Stored::Place::none)
    return overflow.store_if_plenty(usage, bytes, std::max(room, bytes.size()), stored);
  return stored.place == Stored::Place::memory && overflow.append(stored, bytes).ok();
}

void InRing::append(FrameNode* node) noexcept {
  node->ring_before = last;
  node->ring_after = nullptr;
  (last != nullptr ? last->ring_after : first) = node;
  last = node;
}

void InRing::unlink(FrameNode* node) noexcept {
  (node->ring_before != nullptr ? node->ring_before->ring_after : first) = node->ring_after;
  (node->ring_after != nullptr ? node->ring_after->ring_before : last) = node->ring_before;
  node->ring_before = node->ring_after = nullptr;
}

}  // namespace faro::shuffle
