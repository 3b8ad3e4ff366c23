#include "shuffle/receive/in_ring.h"

namespace faro::shuffle {

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
