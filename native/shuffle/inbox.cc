#include "shuffle/inbox.h"

#include <algorithm>

namespace faro::shuffle {

FrameNode* FramePool::take() {
  if (free_ == nullptr) {
    chunks_.push_back(std::make_unique<FrameNode[]>(kChunk));
    FrameNode* nodes = chunks_.back().get();
    for (size_t i = 0; i < kChunk; ++i) {
      nodes[i].next = free_;
      free_ = &nodes[i];
    }
  }
  FrameNode* node = free_;
  free_ = node->next;
  node->next = nullptr;
  return node;
}

void InLane::append(FrameNode* node) noexcept {
  node->lane_before = last;
  node->lane_after = nullptr;
  (last != nullptr ? last->lane_after : first) = node;
  last = node;
}

void InLane::unlink(FrameNode* node) noexcept {
  (node->lane_before != nullptr ? node->lane_before->lane_after : first) = node->lane_after;
  (node->lane_after != nullptr ? node->lane_after->lane_before : last) = node->lane_before;
  node->lane_before = node->lane_after = nullptr;
}

bool Inbox::is_sender(uint32_t worker) const {
  return senders == nullptr ||
         std::find(senders->begin(), senders->end(), worker) != senders->end();
}

void Inbox::activate(Stream& stream) noexcept {
  stream.active = true;
  stream.next_active = nullptr;
  (last_active_ != nullptr ? last_active_->next_active : first_active_) = &stream;
  last_active_ = &stream;
}

void Inbox::deactivate(Stream& stream) noexcept {
  Stream* before = nullptr;
  for (Stream* s = first_active_; s != &stream; s = s->next_active) before = s;
  (before != nullptr ? before->next_active : first_active_) = stream.next_active;
  if (last_active_ == &stream) last_active_ = before;
  stream.active = false;
  stream.next_active = nullptr;
}

void Inbox::append(FrameNode* node) noexcept {
  Stream& stream = streams_[node->sender];
  node->next = nullptr;
  (stream.last != nullptr ? stream.last->next : stream.first) = node;
  stream.last = node;
  if (!stream.active) activate(stream);
}

FrameNode* Inbox::pop(Stream& stream) noexcept {
  FrameNode* node = stream.first;
  stream.first = node->next;
  if (stream.first == nullptr) stream.last = nullptr;
  node->next = nullptr;
  // To the end of the list, or out of it: streams take turns. Popping the first in the list (the
  // usual case) is O(1).
  deactivate(stream);
  if (stream.first != nullptr) activate(stream);
  return node;
}

}  // namespace faro::shuffle
