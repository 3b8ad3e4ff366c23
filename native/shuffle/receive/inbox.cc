#include "shuffle/receive/inbox.h"

#include <algorithm>
#include <utility>

namespace faro::shuffle {

Inbox::SenderQueue& Inbox::queue(uint32_t sender) {
  auto& group = queues_[sender / kGroup];
  if (group == nullptr) {
    received_->make(sender);
    group = std::make_unique<std::array<SenderQueue, kGroup>>();
    index(sender / kGroup);
  }
  return (*group)[sender % kGroup];
}

void Inbox::name_senders(const std::vector<uint32_t>& named) noexcept {
  senders = &named;
  for (uint32_t group = 0; group < queues_.size(); ++group) index(group);
}

void Inbox::index(uint32_t group) noexcept {
  if (queues_[group] == nullptr || senders == nullptr) return;
  for (uint32_t i = 0; i < senders->size(); ++i) {
    const uint32_t sender = (*senders)[i];
    if (sender / kGroup == group) (*queues_[group])[sender % kGroup].index = i;
  }
}

std::vector<uint32_t> Inbox::unopened_senders() const {
  std::vector<uint32_t> unopened;
  for (const uint32_t sender : *senders) {
    const SenderQueue* const queue = find(sender);
    if (queue == nullptr || (!queue->bound && !queue->finish_seen)) unopened.push_back(sender);
  }
  return unopened;
}

bool Inbox::is_sender(uint32_t worker) const {
  return senders == nullptr ||
         std::find(senders->begin(), senders->end(), worker) != senders->end();
}

void Inbox::activate(SenderQueue& queue) noexcept {
  queue.active = true;
  queue.next_active = nullptr;
  (last_active_ != nullptr ? last_active_->next_active : first_active_) = &queue;
  last_active_ = &queue;
}

void Inbox::deactivate(SenderQueue& queue) noexcept {
  SenderQueue* before = nullptr;
  for (SenderQueue* s = first_active_; s != &queue; s = s->next_active) before = s;
  (before != nullptr ? before->next_active : first_active_) = queue.next_active;
  if (last_active_ == &queue) last_active_ = before;
  queue.active = false;
  queue.next_active = nullptr;
}

void Inbox::append(FrameNode* node) noexcept {
  SenderQueue& queue = *find(node->sender);
  node->next = nullptr;
  (queue.last != nullptr ? queue.last->next : queue.first) = node;
  queue.last = node;
  if (!queue.active) activate(queue);
}

FrameNode* Inbox::pop(SenderQueue& queue) noexcept {
  FrameNode* node = queue.first;
  taken_from = true;
  queue.first = node->next;
  if (queue.first == nullptr) queue.last = nullptr;
  if (queue.last_spilled == node) queue.last_spilled = nullptr;
  node->next = nullptr;
  // To the end of the list, or out of it: queues take turns. Popping the first in the list (the
  // usual case) is O(1).
  deactivate(queue);
  if (queue.first != nullptr) activate(queue);
  return node;
}

void Inbox::remove_behind(SenderQueue& queue, FrameNode* before) noexcept {
  FrameNode* const node = std::exchange(before->next, before->next->next);
  if (queue.last == node) queue.last = before;
  node->next = nullptr;
}

}  // namespace faro::shuffle
