#include "shuffle/receive/fragments.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/error.h"
#include "shuffle/operation/file_warning.h"

namespace faro::shuffle {
namespace {

bool is_whole_in_overflow(const FrameNode& node) noexcept {
  return node.ring == nullptr && node.payload_bytes == node.part.row_bytes;
}

}  // namespace
std::byte* RowMemory::take(uint64_t bytes) {
  size_t room = 0;
  std::byte* memory = nullptr;
  try {
    memory = allocate_(bytes, room);
  } catch (const std::bad_alloc&) {
  } catch (...) {
    thrown_ = std::current_exception();
  }
  if (memory == nullptr) {
    refusal_ =
        base::error(Code::invalid_argument, "allocate gave no memory for a row of {} bytes", bytes);
  } else if (room < bytes) {
    refusal_ = base::error(Code::invalid_argument, "allocate gave {} bytes for a row of {} bytes",
                           room, bytes);
  } else if (reinterpret_cast<uintptr_t>(memory) % kAlignment != 0) {
    refusal_ = base::error(Code::invalid_argument,
                           "allocate gave memory that is not aligned to {} bytes", kAlignment);
  }
  return refusal_.ok() ? memory : nullptr;
}

FrameNode* Fragments::assemble(Inbox& inbox, Inbox::SenderQueue& queue, RowMemory* into) {
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
    if (into == nullptr && is_whole_in_overflow(*node)) return take_whole(inbox, queue);
    if (!queue.assembly.is_begun()) queue.assembly.whole_bytes = node->part.row_bytes;
    const bool has_room =
        into != nullptr ? move_into(*into, queue.assembly) : make_room(inbox, queue, *node);
    if (!has_room) return nullptr;
    append_first(inbox, queue);
    if (is_last) return finish_row(queue, sender);
    operation_.progressed();  // the row is larger than what lies in the ring: each part is progress
  }
  return nullptr;
}

bool Fragments::continues_row(const Inbox& inbox, const Inbox::SenderQueue& queue,
                              const FrameNode& node) const {
  const bool is_first = !queue.assembly.is_begun();
  const uint64_t row_bytes = is_first ? node.part.row_bytes : queue.assembly.whole_bytes;
  const bool is_last = queue.assembly.bytes + node.payload_bytes == row_bytes;
  return node.part.row_bytes == row_bytes && node.part.offset == queue.assembly.bytes &&
         node.payload_bytes <= row_bytes - queue.assembly.bytes &&
         row_bytes <= worker_.settings.row_limit_bytes &&
         (inbox.row_bytes == 0 || row_bytes == inbox.row_bytes) && is_last == (node.row_count == 1);
}

// Room for the part of a row that a fragment brings. A sender that says that its row is large gets memory for it as its
// bytes come, at most kGrowth times as much as have come.
bool Fragments::make_room(Inbox& inbox, Inbox::SenderQueue& queue, const FrameNode& node) {
  constexpr uint64_t kGrowth = 8;
  if (queue.assembly.given != nullptr) return true;
  const bool is_first = queue.assembly.stored.place == Stored::Place::none;
  const uint64_t needed = queue.assembly.bytes + node.payload_bytes;
  if (!is_first && needed <= queue.assembly.stored.bytes) return true;
  const uint64_t room =
      std::min(queue.assembly.whole_bytes, std::max(kGrowth * needed, Overflow::kPackedBytes));
  const Status status =
      is_first ? worker_.overflow.allocate(inbox.query()->usage, room, queue.assembly.stored)
               : worker_.overflow.grow(queue.assembly.stored, room);
  if (!status.ok()) (void)operation_.overflow_exhausted(inbox.query(), room, status);
  return status.ok();
}

// The row goes on in the engine's memory, all of which is there at once. False: there is none.
bool Fragments::move_into(RowMemory& memory, Inbox::Assembly& assembly) {
  if (assembly.given != nullptr) return true;
  std::byte* const given = memory.take(assembly.whole_bytes);
  if (given == nullptr) return false;
  if (assembly.bytes > 0) std::memcpy(given, assembly.stored.memory, assembly.bytes);
  worker_.overflow.free(assembly.stored);
  assembly.given = given;
  return true;
}

// Gives the fragment at the head of a queue back, for which there is room.
void Fragments::append_first(Inbox& inbox, Inbox::SenderQueue& queue) {
  FrameNode* const node = queue.first;
  warn_if_in_file(worker_, *inbox.query(), inbox.stage(), queue.assembly.stored);
  std::memcpy(queue.assembly.memory() + queue.assembly.bytes, node->payload, node->payload_bytes);
  queue.assembly.bytes += node->payload_bytes;
  inbox.pop(queue);
  if (node->ring != nullptr) node->ring->unlink(node);
  frames_.release(node, false);
}

// The row at the head of a queue, all of which was packed into one block, stays there.
FrameNode* Fragments::take_whole(Inbox& inbox, Inbox::SenderQueue& queue) {
  FrameNode* const row = inbox.pop(queue);
  row->kind = wire::FrameKind::data;
  row->row_bytes = static_cast<uint32_t>(row->payload_bytes);
  return row;
}

FrameNode* Fragments::finish_row(Inbox::SenderQueue& queue, uint32_t sender) {
  Inbox::Assembly& assembled = queue.assembly;
  FrameNode* const row = frames_.take();  // the fragment's, which was just given back
  row->sender = sender;
  row->row_count = 1;
  row->row_bytes = static_cast<uint32_t>(assembled.bytes);
  row->payload_bytes = assembled.bytes;
  row->payload = assembled.memory();
  row->stored = assembled.stored;
  assembled = {};
  return row;
}

}  // namespace faro::shuffle
