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

FrameNode* Fragments::assemble(Inbox& inbox, Inbox::Stream& stream) {
  while (stream.first != nullptr && stream.first->kind == wire::FrameKind::fragment) {
    FrameNode* const node = stream.first;
    if (!frames_.make_readable(*inbox.query(), *node)) return nullptr;
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
    if (!append_first(inbox, stream)) return nullptr;
    if (is_last) return finish_row(stream, sender);
    operation_.progressed();  // the row is larger than what lies in the ring: each part is progress
  }
  return nullptr;
}

bool Fragments::continues_row(const Inbox& inbox, const Inbox::Stream& stream,
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
bool Fragments::make_room(Inbox& inbox, Inbox::Stream& stream, const FrameNode& node) {
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
bool Fragments::append_first(Inbox& inbox, Inbox::Stream& stream) {
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

FrameNode* Fragments::finish_row(Inbox::Stream& stream, uint32_t sender) {
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

}  // namespace faro::shuffle
