#include "shuffle/receive/frame_node.h"

#include <new>
#include <utility>

namespace faro::shuffle {

FramePool::~FramePool() {
  while (free_ != nullptr) delete std::exchange(free_, free_->next);
}

FrameNode* FramePool::take() noexcept {
  if (free_ == nullptr) return new (std::nothrow) FrameNode;
  FrameNode* const node = std::exchange(free_, free_->next);
  --free_count_;
  node->next = nullptr;
  return node;
}

void FramePool::give(FrameNode* node) noexcept {
  if (free_count_ == kKept) {
    delete node;
    return;
  }
  *node = FrameNode{};
  node->next = std::exchange(free_, node);
  ++free_count_;
}

}  // namespace faro::shuffle
