#include "shuffle/receive/spill.h"

#include <algorithm>
#include <span>

#include "base/return_if_error.h"
#include "shuffle/operation/file_warning.h"
#include "shuffle/receive/inbox.h"

namespace faro::shuffle {
namespace {

using counters::count;

bool is_fragment(const FrameNode& node) noexcept { return node.kind == wire::FrameKind::fragment; }

// Whether a fragment is of the same row as the one before it, and follows on that.
bool continues(const FrameNode& before, const FrameNode& node) noexcept {
  return is_fragment(before) && before.row_count == 0 &&
         node.part.row_bytes == before.part.row_bytes &&
         node.part.offset == before.part.offset + before.payload_bytes;
}

bool is_packable(const FrameNode& before, const FrameNode& node) noexcept {
  const bool is_alike = is_fragment(node)
                            ? continues(before, node)
                            : !is_fragment(before) && before.row_bytes == node.row_bytes;
  return is_alike && before.stored.room_left() >= node.payload_bytes;
}

// A sender may say that its row is larger than what it ever sends: the first block for it is no larger than those of other
// rows, each further one at most twice the one before.
uint64_t room_for_fragment(const FrameNode* before, const FrameNode& node) noexcept {
  const uint64_t bytes = node.payload_bytes;
  if (node.part.offset >= node.part.row_bytes) return bytes;
  const uint64_t trusted = before != nullptr && continues(*before, node)
                               ? std::max(Overflow::kPackedBytes, 2 * before->stored.room)
                               : Overflow::kPackedBytes;
  return std::max(bytes, std::min(trusted, node.part.row_bytes - node.part.offset));
}

uint64_t room_behind(const FrameNode* before, const FrameNode& node) noexcept {
  if (is_fragment(node)) return room_for_fragment(before, node);
  return room_to_pack(before == nullptr ? 0 : before->stored.room, node.payload_bytes);
}

Inbox::SenderQueue& queue_of(const FrameNode& node) { return *node.inbox->find(node.sender); }

}  // namespace

// It waits for room alone, and may receive of the inbox when it has found some.
bool Spill::waits_with(const Inbox& inbox) const noexcept {
  return inbox.open && !inbox.is_taken_in_exchange && operation_.call_waits() &&
         operation_.blocked_on().is_on_room_alone();
}

bool Spill::sends_first(const Inbox& inbox) const noexcept {
  return !inbox.taken_from && operation_.blocked_on().is_on_room_of(inbox.query()->id);
}

bool Spill::may_be_urgent(const Inbox& inbox) const noexcept {
  return waits_with(inbox) && (operation_.is_within_row() || sends_first(inbox));
}

// Whoever is to make room for this worker may itself wait for room in its rings, or for room of the same stage elsewhere.
Haste Spill::haste_of(const InRing& ring, const Inbox& inbox) const noexcept {
  if (inbox.is_taken_in_exchange) return Haste::never;
  const BlockedOn& blocked = operation_.blocked_on();
  const bool may_keep_waiting =
      blocked.is_on_room_at(ring.sender) || blocked.is_on_room_of(inbox.query()->id, inbox.stage());
  const bool is_urgent = sends_first(inbox) || (operation_.is_within_row() && may_keep_waiting);
  if (is_urgent && waits_with(inbox)) return Haste::at_once;
  const bool is_late = operation_.call_waits() && blocked.is_on_room_alone() && !may_keep_waiting;
  return is_late ? Haste::late : Haste::soon;
}

bool Spill::spill(InRing& ring, Haste after) {
  bool spilled = false;
  FrameNode* next = nullptr;
  for (FrameNode* node = ring.first; node != nullptr; node = next) {
    next = node->ring_after;
    if (haste_of(ring, *node->inbox) > after) continue;
    if (!spill_frame(ring, *node, after)) break;
    spilled = true;
  }
  if (spilled) ring.transport->flush_releases();
  return spilled;
}

bool Spill::has_any(const InRing& ring, Haste after) const noexcept {
  for (const FrameNode* node = ring.first; node != nullptr; node = node->ring_after) {
    if (haste_of(ring, *node->inbox) <= after) return true;
  }
  return false;
}

bool Spill::spill_frame(InRing& ring, FrameNode& node, Haste after) {
  const uint64_t bytes = node.payload_bytes;
  const uint64_t rows = node.row_count;
  const Inbox& inbox = *node.inbox;
  ReceivedCounts& received = inbox.received()->of(node.sender);
  if (after == Haste::at_once) {
    if (!move_to_memory(ring, node)) return false;
  } else if (const Status status = move(ring, node); !status.ok()) {
    (void)operation_.overflow_exhausted(inbox.query(), bytes, status);
    return false;
  }
  count(worker_.counters.frames_spilled);
  count(worker_.counters.bytes_spilled, bytes);
  received.add_spilled(rows, bytes);
  return true;
}

Status Spill::move(InRing& ring, FrameNode& node) {
  FrameNode* const before = packable_before(node);
  const std::span<const std::byte> rows(node.payload, node.payload_bytes);
  if (before != nullptr) {
    FARO_RETURN_IF_ERROR(worker_.overflow.append(before->stored, rows));
    packed(ring, node, *before);
    return Status::Ok();
  }
  Stored stored;
  FARO_RETURN_IF_ERROR(worker_.overflow.store(
      node.inbox->query()->usage, rows, room_behind(queue_of(node).last_spilled, node), stored));
  warn_if_in_file(worker_, *node.inbox->query(), node.inbox->stage(), stored);
  moved(ring, node, stored);
  return Status::Ok();
}

bool Spill::move_to_memory(InRing& ring, FrameNode& node) {
  FrameNode* const before = packable_before(node);
  if (before != nullptr) {
    if (before->stored.place != Stored::Place::memory) return false;
    return move(ring, node).ok();
  }
  Stored stored;
  const std::span<const std::byte> rows(node.payload, node.payload_bytes);
  if (!worker_.overflow.store_if_plenty(node.inbox->query()->usage, rows,
                                        room_behind(queue_of(node).last_spilled, node), stored))
    return false;
  moved(ring, node, stored);
  return true;
}

// The frame before it in its queue, if that lies in overflow in a block with room for this one.
FrameNode* Spill::packable_before(const FrameNode& node) noexcept {
  FrameNode* const before = queue_of(node).last_spilled;
  return before != nullptr && before->next == &node && is_packable(*before, node) ? before
                                                                                  : nullptr;
}

void Spill::packed(InRing& ring, FrameNode& node, FrameNode& into) noexcept {
  into.payload_bytes += node.payload_bytes;
  into.row_count += node.row_count;
  Inbox::remove_behind(queue_of(node), &into);
  ring.unlink(&node);
  frames_.release_in_ring(ring, node.token);
  frames_.give(&node);
}

void Spill::moved(InRing& ring, FrameNode& node, const Stored& to) noexcept {
  ring.unlink(&node);
  frames_.release_in_ring(ring, node.token);
  node.ring = nullptr;
  node.stored = to;
  node.payload = to.memory;  // null if it went to the file
  queue_of(node).last_spilled = &node;
}

}  // namespace faro::shuffle
