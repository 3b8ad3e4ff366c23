#include "shuffle/receive/in_ring.h"

namespace faro::shuffle {

void InRing::append(FrameNode* node) noexcept {
  node->lane_before = last;
  node->lane_after = nullptr;
  (last != nullptr ? last->lane_after : first) = node;
  last = node;
}

void InRing::unlink(FrameNode* node) noexcept {
  (node->lane_before != nullptr ? node->lane_before->lane_after : first) = node->lane_after;
  (node->lane_after != nullptr ? node->lane_after->lane_before : last) = node->lane_before;
  node->lane_before = node->lane_after = nullptr;
}

}  // namespace faro::shuffle
