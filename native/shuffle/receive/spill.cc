#include "shuffle/receive/spill.h"

#include <algorithm>
#include <span>

#include "base/return_if_error.h"
#include "shuffle/operation/file_warning.h"
#include "shuffle/receive/inbox.h"

namespace faro::shuffle {
namespace {

using counters::count;

// The first block for a sender's rows in overflow is small: many senders with few rows each must not take much.
constexpr uint64_t kFirstPackedBytes = 512;

bool is_packable(const FrameNode& before, const FrameNode& node) noexcept {
  return before.kind == wire::FrameKind::data && node.kind == wire::FrameKind::data &&
         before.row_bytes == node.row_bytes && before.stored.room_left() >= node.payload_bytes;
}

// How large a block to allocate, so that later frames fit in: twice the block before, and a whole number of such
// frames.
uint64_t room_to_pack(const FrameNode* before, const FrameNode& node) noexcept {
  const uint64_t bytes = node.payload_bytes;
  if (node.kind != wire::FrameKind::data) return bytes;
  const uint64_t wanted = std::min(Overflow::kPackedBytes,
                                   before == nullptr ? kFirstPackedBytes : 2 * before->stored.room);
  return bytes < kFirstPackedBytes ? wanted : std::max(wanted / bytes, uint64_t{1}) * bytes;
}

}  // namespace

bool Spill::spill(InRing& ring) {
  bool spilled = false;
  while (ring.first != nullptr) {
    const uint64_t bytes = ring.first->payload_bytes;
    const uint64_t rows = ring.first->row_count;
    const uint64_t bytes_of_rows = ring.first->bytes_of_rows();
    ReceivedCounts& received = ring.first->inbox->received()->of(ring.first->sender);
    if (const Status status = spill_oldest(ring); !status.ok()) {
      (void)operation_.overflow_exhausted(ring.first->inbox->query(), bytes, status);
      break;
    }
    count(worker_.counters.frames_spilled);
    count(worker_.counters.bytes_spilled, bytes);
    received.add_spilled(rows, bytes_of_rows);
    spilled = true;
  }
  if (spilled) ring.transport->flush_releases();
  return spilled;
}

// Into the block of the frame before it in its queue, or into a new one.
Status Spill::spill_oldest(InRing& ring) {
  FrameNode& node = *ring.first;
  Inbox::SenderQueue& queue = node.inbox->queue(node.sender);
  const std::span<const std::byte> rows(node.payload, node.payload_bytes);
  FrameNode* const before = queue.last_spilled;
  if (before != nullptr && before->next == &node && is_packable(*before, node)) {
    FARO_RETURN_IF_ERROR(worker_.overflow.append(before->stored, rows));
    before->payload_bytes += rows.size();
    before->row_count += node.row_count;
    Inbox::remove_behind(queue, before);
    ring.unlink(&node);
    frames_.release_in_ring(ring, node.token);
    frames_.give(&node);
    return Status::Ok();
  }
  Stored stored;
  FARO_RETURN_IF_ERROR(
      worker_.overflow.store(node.inbox->query()->usage, rows, room_to_pack(before, node), stored));
  warn_if_in_file(worker_, *node.inbox->query(), node.inbox->stage(), stored);
  ring.unlink(&node);
  frames_.release_in_ring(ring, node.token);
  node.ring = nullptr;
  node.stored = stored;
  node.payload = stored.memory;  // null if it went to the file
  queue.last_spilled = &node;
  return Status::Ok();
}

}  // namespace faro::shuffle
