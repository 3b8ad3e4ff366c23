#include "shuffle/receive/inbox.h"

#include <algorithm>
#include <utility>

namespace faro::shuffle {

Inbox::Stream& Inbox::stream(uint32_t sender) {
  auto& group = streams_[sender / kGroup];
  if (group == nullptr) {
    received_->make(sender);
    group = std::make_unique<std::array<Stream, kGroup>>();
  }
  return (*group)[sender % kGroup];
}

const Inbox::Stream* Inbox::find(uint32_t sender) const noexcept {
  const auto& group = streams_[sender / kGroup];
  return group == nullptr ? nullptr : &(*group)[sender % kGroup];
}

std::vector<uint32_t> Inbox::unopened_senders() const {
  std::vector<uint32_t> unopened;
  for (const uint32_t sender : *senders) {
    const Stream* const stream = find(sender);
    if (stream == nullptr || (!stream->bound && !stream->finish_seen)) unopened.push_back(sender);
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
  Stream& stream = *find(node->sender);
  node->next = nullptr;
  (stream.last != nullptr ? stream.last->next : stream.first) = node;
  stream.last = node;
  if (!stream.active) activate(stream);
}

FrameNode* Inbox::pop(Stream& stream) noexcept {
  FrameNode* node = stream.first;
  stream.first = node->next;
  if (stream.first == nullptr) stream.last = nullptr;
  if (stream.last_spilled == node) stream.last_spilled = nullptr;
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
