#include "shuffle/receive/delivery.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/planted.h"
#include "shuffle/operation/file_warning.h"

namespace faro::shuffle {
namespace {

wire::FragmentPayload fragment_of(const FrameNode& node) {
  wire::FragmentPayload fragment;
  std::memcpy(&fragment, node.payload, sizeof fragment);
  return fragment;
}

}  // namespace

FrameNode* Delivery::next(Inbox& inbox, Inbox::Stream* only) {
  for (;;) {
    Inbox::Stream* const stream = only == nullptr          ? inbox.active()
                                  : only->first != nullptr ? only
                                                           : nullptr;
    if (stream == nullptr || inbox.query()->failed()) return nullptr;
    const bool is_fragment = stream->first->kind == wire::FrameKind::fragment;
    FrameNode* const node = is_fragment ? assemble(inbox, *stream) : take_whole(inbox, *stream);
    if (node == nullptr) {
      // The rest of the row has not come: other senders' turn. Else nothing can be read, or assembled, now.
      if (is_fragment && stream->first == nullptr) continue;
      return nullptr;
    }
    inboxes_.finish_if_done(inbox, *stream);
    return node;
  }
}

FrameNode* Delivery::take_whole(Inbox& inbox, Inbox::Stream& stream) {
  FrameNode* const node = stream.first;
  if (!make_readable(inbox, *node)) return nullptr;
  inbox.pop(stream);
  if (node->ring == nullptr) return node;
  node->ring->unlink(node);
  if (base::planted(base::Plant::read_position_too_early))
    frames_.release_in_ring(*node->ring, node->token);
  return node;
}

// The finished row as a node of its own; null if the next fragment has not come, or has no room.
FrameNode* Delivery::assemble(Inbox& inbox, Inbox::Stream& stream) {
  while (stream.first != nullptr && stream.first->kind == wire::FrameKind::fragment) {
    FrameNode* const node = stream.first;
    if (!make_readable(inbox, *node)) return nullptr;
    if (!continues_row(inbox, stream, *node)) {
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
    if (!append_fragment(inbox, stream)) return nullptr;
    if (is_last) return finish_row(stream, sender);
    wait_loop_.progressed();  // the row is larger than what lies in the ring: each part is progress
  }
  return nullptr;
}

bool Delivery::continues_row(const Inbox& inbox, const Inbox::Stream& stream,
                             const FrameNode& node) const {
  const wire::FragmentPayload fragment = fragment_of(node);
  const bool is_first = stream.assembly.place == Stored::Place::none;
  const uint64_t row_bytes = is_first ? fragment.row_bytes : stream.whole_bytes;
  const bool is_last = stream.assembled_bytes + node.bytes_of_rows() == row_bytes;
  return fragment.row_bytes == row_bytes && fragment.offset == stream.assembled_bytes &&
         node.bytes_of_rows() <= row_bytes - stream.assembled_bytes &&
         row_bytes <= worker_.settings.row_limit_bytes &&
         (inbox.row_bytes == 0 || row_bytes == inbox.row_bytes) && is_last == (node.row_count == 1);
}

// Room for the part of a row that a fragment brings. A sender that says that its row is large gets memory for it as its
// bytes come, at most kGrowth times as much as have come.
bool Delivery::make_room(Inbox& inbox, Inbox::Stream& stream, const FrameNode& node) {
  constexpr uint64_t kGrowth = 8;
  const bool is_first = stream.assembly.place == Stored::Place::none;
  const uint64_t needed = stream.assembled_bytes + node.bytes_of_rows();
  if (!is_first && needed <= stream.assembly.bytes) return true;
  if (is_first) stream.whole_bytes = fragment_of(node).row_bytes;
  const uint64_t room =
      std::min(stream.whole_bytes, std::max(kGrowth * needed, Overflow::kPackedBytes));
  const Status status = is_first
                            ? worker_.overflow.allocate(inbox.query()->usage, room, stream.assembly)
                            : worker_.overflow.grow(stream.assembly, room);
  if (!status.ok()) (void)operation_.overflow_exhausted(inbox.query(), room, status);
  return status.ok();
}

// Gives the fragment at the head of a stream back; false if there is no room for its row.
bool Delivery::append_fragment(Inbox& inbox, Inbox::Stream& stream) {
  FrameNode* const node = stream.first;
  if (!make_room(inbox, stream, *node)) return false;
  warn_if_in_file(worker_, *inbox.query(), inbox.stage(), stream.assembly);
  std::memcpy(stream.assembly.memory + stream.assembled_bytes,
              node->payload + sizeof(wire::FragmentPayload), node->bytes_of_rows());
  stream.assembled_bytes += node->bytes_of_rows();
  inbox.pop(stream);
  if (node->ring != nullptr) node->ring->unlink(node);
  frames_.release(node, false);
  return true;
}

FrameNode* Delivery::finish_row(Inbox::Stream& stream, uint32_t sender) {
  FrameNode* const row = frames_.take();  // the fragment's, which was just given back
  row->sender = sender;
  row->row_count = 1;
  row->row_bytes = static_cast<uint32_t>(stream.assembly.bytes);
  row->payload_bytes = stream.assembly.bytes;
  row->stored = std::exchange(stream.assembly, {});
  row->payload = row->stored.memory;
  stream.assembled_bytes = 0;
  return row;
}

bool Delivery::make_readable(Inbox& inbox, FrameNode& node) {
  if (node.payload != nullptr) return true;
  if (Status status = worker_.overflow.load(node.stored); !status.ok()) {
    worker_.queries.fail(*inbox.query(), status);
    return false;
  }
  node.payload = node.stored.memory;
  return true;
}

}  // namespace faro::shuffle
