#include "shuffle/receive/fragments.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "shuffle/operation/file_warning.h"

namespace faro::shuffle {
namespace {

wire::FragmentPayload fragment_of(const FrameNode& node) {
  wire::FragmentPayload fragment;
  std::memcpy(&fragment, node.payload, sizeof fragment);
  return fragment;
}

}  // namespace

FrameNode* Fragments::assemble(Inbox& inbox, Inbox::SenderQueue& queue) {
  while (queue.first != nullptr && queue.first->kind == wire::FrameKind::fragment) {
    FrameNode* const node = queue.first;
    if (!frames_.make_readable(*inbox.query(), *node)) return nullptr;
    if (!continues_row(inbox, queue, *node)) {
      worker_.queries.fail(
          *inbox.query(),
          base::error(Code::query_failed,
                      "stage {}: worker {} sent a fragment that does not continue its row",
                      inbox.stage(), node->sender)
              .of_stage(inbox.stage()));
      return nullptr;
    }
    const uint32_t sender = node->sender;
    const bool is_last = node->row_count == 1;
    if (!append_first(inbox, queue)) return nullptr;
    if (is_last) return finish_row(queue, sender);
    operation_.progressed();  // the row is larger than what lies in the ring: each part is progress
  }
  return nullptr;
}

bool Fragments::continues_row(const Inbox& inbox, const Inbox::SenderQueue& queue,
                              const FrameNode& node) const {
  const wire::FragmentPayload fragment = fragment_of(node);
  const bool is_first = queue.assembly.stored.place == Stored::Place::none;
  const uint64_t row_bytes = is_first ? fragment.row_bytes : queue.assembly.whole_bytes;
  const bool is_last = queue.assembly.bytes + node.bytes_of_rows() == row_bytes;
  return fragment.row_bytes == row_bytes && fragment.offset == queue.assembly.bytes &&
         node.bytes_of_rows() <= row_bytes - queue.assembly.bytes &&
         row_bytes <= worker_.settings.row_limit_bytes &&
         (inbox.row_bytes == 0 || row_bytes == inbox.row_bytes) && is_last == (node.row_count == 1);
}

// Room for the part of a row that a fragment brings. A sender that says that its row is large gets memory for it as its
// bytes come, at most kGrowth times as much as have come.
bool Fragments::make_room(Inbox& inbox, Inbox::SenderQueue& queue, const FrameNode& node) {
  constexpr uint64_t kGrowth = 8;
  const bool is_first = queue.assembly.stored.place == Stored::Place::none;
  const uint64_t needed = queue.assembly.bytes + node.bytes_of_rows();
  if (!is_first && needed <= queue.assembly.stored.bytes) return true;
  if (is_first) queue.assembly.whole_bytes = fragment_of(node).row_bytes;
  const uint64_t room =
      std::min(queue.assembly.whole_bytes, std::max(kGrowth * needed, Overflow::kPackedBytes));
  const Status status =
      is_first ? worker_.overflow.allocate(inbox.query()->usage, room, queue.assembly.stored)
               : worker_.overflow.grow(queue.assembly.stored, room);
  if (!status.ok()) (void)operation_.overflow_exhausted(inbox.query(), room, status);
  return status.ok();
}

// Gives the fragment at the head of a queue back; false if there is no room for its row.
bool Fragments::append_first(Inbox& inbox, Inbox::SenderQueue& queue) {
  FrameNode* const node = queue.first;
  if (!make_room(inbox, queue, *node)) return false;
  warn_if_in_file(worker_, *inbox.query(), inbox.stage(), queue.assembly.stored);
  std::memcpy(queue.assembly.stored.memory + queue.assembly.bytes,
              node->payload + sizeof(wire::FragmentPayload), node->bytes_of_rows());
  queue.assembly.bytes += node->bytes_of_rows();
  inbox.pop(queue);
  if (node->ring != nullptr) node->ring->unlink(node);
  frames_.release(node, false);
  return true;
}

FrameNode* Fragments::finish_row(Inbox::SenderQueue& queue, uint32_t sender) {
  FrameNode* const row = frames_.take();  // the fragment's, which was just given back
  row->sender = sender;
  row->row_count = 1;
  row->row_bytes = static_cast<uint32_t>(queue.assembly.stored.bytes);
  row->payload_bytes = queue.assembly.stored.bytes;
  row->stored = std::exchange(queue.assembly.stored, {});
  row->payload = row->stored.memory;
  queue.assembly.bytes = 0;
  return row;
}

}  // namespace faro::shuffle
