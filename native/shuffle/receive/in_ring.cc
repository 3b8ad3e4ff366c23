#include "shuffle/receive/in_ring.h"

#include <cstring>

namespace faro::shuffle {

// A fragment begins by saying where in its row it belongs, which is read once.
std::span<const std::byte> MovedFrame::split(const transport::FrameView& frame) noexcept {
  const std::span<const std::byte> bytes(frame.payload, frame.payload_bytes());
  if (frame.header.kind != wire::FrameKind::fragment) return bytes;
  std::memcpy(&part, bytes.data(), sizeof part);
  return bytes.subspan(sizeof part);
}

Status MovedFrame::store(Overflow& overflow, OverflowUsage& usage,
                         const transport::FrameView& frame) {
  const std::span<const std::byte> bytes = split(frame);
  return overflow.store(usage, bytes, bytes.size(), stored);
}

bool MovedFrame::store_if_plenty(Overflow& overflow, OverflowUsage& usage,
                                 const transport::FrameView& frame) {
  const std::span<const std::byte> bytes = split(frame);
  return overflow.store_if_plenty(usage, bytes, bytes.size(), stored);
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
