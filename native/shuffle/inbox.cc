#include "shuffle/inbox.h"

#include <algorithm>
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

std::vector<uint32_t> Inbox::unopened_senders() const {
  std::vector<uint32_t> unopened;
  for (const uint32_t sender : *senders) {
    const Stream& stream = streams_[sender];
    if (!stream.bound && !stream.finish_seen) unopened.push_back(sender);
  }
  return unopened;
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
  if (stream.aside == node) stream.aside = nullptr;
  node->next = nullptr;
  // To the end of the list, or out of it: streams take turns. Popping the first in the list (the
  // usual case) is O(1).
  deactivate(stream);
  if (stream.first != nullptr) activate(stream);
  return node;
}

void Inbox::remove_behind(Stream& stream, FrameNode* before) noexcept {
  FrameNode* const node = std::exchange(before->next, before->next->next);
  if (stream.last == node) stream.last = before;
  node->next = nullptr;
}

}  // namespace faro::shuffle
