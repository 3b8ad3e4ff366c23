#include "shuffle/receive/node_stream.h"

#include <algorithm>

namespace faro::shuffle {

static_assert(sizeof(NodeFrame) + Overflow::kAllocatorBytes + 64 <= Overflow::kDescriptionBytes,
              "a frame that was moved, and what the spill file keeps of a part");

bool NodeStream::has_readers() const noexcept {
  return !std::ranges::all_of(readers, &NodeReader::has_left);
}

NodeFrame* NodeStream::first_in_ring() const noexcept {
  NodeFrame* found = nullptr;
  for (NodeFrame* frame = last; frame != nullptr; frame = frame->before) {
    if (frame->is_in_ring()) {
      found = frame;
    } else if (frame->has_rows()) {
      break;
    }
  }
  return found;
}

void NodeStream::append(NodeFrame* frame) noexcept {
  frame->before = last;
  frame->next = nullptr;
  (last != nullptr ? last->next : first) = frame;
  last = frame;
}

void NodeStream::remove(NodeFrame* frame) noexcept {
  (frame->before != nullptr ? frame->before->next : first) = frame->next;
  (frame->next != nullptr ? frame->next->before : last) = frame->before;
}

void NodeStream::replace(NodeFrame* frame, NodeFrame* by) noexcept {
  by->before = frame->before;
  by->next = frame->next;
  by->unread = frame->unread;
  (by->before != nullptr ? by->before->next : first) = by;
  (by->next != nullptr ? by->next->before : last) = by;
  for (NodeReader& reader : readers) {
    if (reader.next == frame) reader.next = by;
  }
  if (row_begin == frame) row_begin = by;
}

}  // namespace faro::shuffle
