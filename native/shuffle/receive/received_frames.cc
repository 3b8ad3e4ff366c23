#include "shuffle/receive/received_frames.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/planted.h"
#include "base/return_if_error.h"

namespace faro::shuffle {

using base::Plant;
using base::planted;  // false, except in the test that plants bugs: base/planted.h

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

FrameNode* ReceivedFrames::take() {
  FrameNode* const node = pool_.take();
  if (node == nullptr) throw std::bad_alloc();
  return node;
}

bool ReceivedFrames::make_readable(Query& query, FrameNode& node) {
  if (node.payload != nullptr) return true;
  if (Status status = worker_.overflow.load(node.stored); !status.ok()) {
    worker_.queries.fail(query, status);
    return false;
  }
  node.payload = node.stored.memory;
  return true;
}

void ReceivedFrames::release(FrameNode* node, bool was_handed_out) noexcept {
  if (node->ring != nullptr) {
    if (was_handed_out) set_held(held() - 1);
    if (!(was_handed_out && planted(Plant::read_position_too_early)))
      release_in_ring(*node->ring, node->token);
  } else {
    worker_.overflow.free(node->stored);
  }
  pool_.give(node);
}

void ReceivedFrames::release_in_ring(InRing& ring, uint32_t token) noexcept {
  ring.transport->release(token);
  note_unsent_release(ring);
}

Status ReceivedFrames::detach(Query& query, FrameNode* node) {
  if (node->ring == nullptr) return Status::Ok();
  Stored stored;
  FARO_RETURN_IF_ERROR(worker_.overflow.allocate(query.usage, node->payload_bytes, stored));
  std::memcpy(stored.memory, node->payload, node->payload_bytes);
  if (!planted(Plant::read_position_too_early)) release_in_ring(*node->ring, node->token);
  set_held(held() - 1);
  node->ring = nullptr;
  node->stored = stored;
  node->payload = stored.memory;
  return Status::Ok();
}

void ReceivedFrames::note_unsent_release(InRing& ring) noexcept {
  if (ring.release_unsent) return;
  ring.release_unsent = true;
  unsent_.push_back(&ring);
}

void ReceivedFrames::tell_releases() {
  for (InRing* ring : unsent_) {
    ring->release_unsent = false;
    ring->transport->flush_releases();
  }
  unsent_.clear();
}

}  // namespace faro::shuffle
