#include "shuffle/send/send_side.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "session/resources.h"

namespace faro::shuffle {

// With its place in the list of rings to flush.
static_assert(sizeof(OutRing) + sizeof(void*) <= session::kOutgoingLaneRingBytes);

using counters::count;
using wire::FrameHeader;

SendSide::SendSide(const WorkerContext& worker, Operation& operation, WaitLoop& wait_loop,
                   ReceiveSide& receive_side)
    : worker_(worker), operation_(operation), wait_loop_(wait_loop), receive_side_(receive_side) {}

void SendSide::drop_queues() noexcept {
  for (auto& [node, rings] : rings_) {
    for (OutRing& ring : rings) {
      while (!ring.queue_empty()) ring.dequeue();
    }
  }
}

// The ends of the rings belong to links: LinkLanes sets `transport`.
std::span<OutRing> SendSide::rings_of(uint32_t node) {
  if (const auto made = rings_.find(node); made != rings_.end()) return made->second;
  const session::Node& peer = worker_.membership.nodes()[node];
  const auto rings_per_lane = static_cast<uint32_t>(worker_.settings.rings_per_lane);
  std::vector<OutRing> rings(size_t{peer.worker_count} * rings_per_lane);
  for (uint32_t i = 0; i < rings.size(); ++i) {
    OutRing& ring = rings[i];
    ring.receiver = peer.first_worker + i / rings_per_lane;
    ring.counters = &unlinked_;
    ring.to_self = ring.receiver == worker_.number;
  }
  ring_count_ += rings.size();
  dirty_.reserve(ring_count_);
  return rings_.emplace(node, std::move(rings)).first->second;
}

void SendSide::forget_rings(uint32_t node) noexcept {
  std::erase_if(dirty_, [&](const OutRing* ring) {
    return worker_.queries.node_of_worker(ring->receiver) == node;
  });
  ring_count_ -= rings_.at(node).size();
  rings_.erase(node);
}

OutRing& SendSide::ring_to(uint32_t receiver_worker, uint32_t stage) {
  const uint32_t node = worker_.queries.node_of_worker(receiver_worker);
  const auto rings_per_lane = static_cast<uint32_t>(worker_.settings.rings_per_lane);
  const uint32_t remote = receiver_worker - worker_.membership.nodes()[node].first_worker;
  return rings_of(node)[size_t{remote} * rings_per_lane + stage % rings_per_lane];
}

// --- frames

transport::Claim SendSide::claim(OutRing& ring, uint32_t least_bytes, uint32_t most_bytes) {
  if (ring.held->load(std::memory_order_relaxed)) return {};
  for (;;) {
    const transport::Claim claim = ring.transport->claim(least_bytes, most_bytes);
    if (claim.bytes != 0 || !make_room_in_own_ring(ring)) return claim;
  }
}

// Of a ring to the worker itself, only the worker can read. So a call that waits makes room here, or it would wait
// forever. After a call that only tries, the engine can receive instead.
bool SendSide::make_room_in_own_ring(OutRing& ring) {
  if (!ring.to_self || holds_batches() || !wait_loop_.call_waits()) return false;
  ring.transport->post();
  (void)receive_side_.poll();
  return receive_side_.spill_own();
}

void SendSide::commit(OutRing& ring, uint32_t length) {
  ring.transport->commit(length);
  // A transfer starts a little below the threshold, too. What is missing may be less than the next row needs, or room
  // for a frame of a single row: full frames with rows of 100 bytes leave up to 64 bytes of the 16 KiB missing.
  const uint32_t frame = ring.transport->frame_limit();
  const uint64_t threshold = worker_.settings.threshold_bytes;
  const uint64_t missing = threshold >= frame ? frame / 8 : 0;
  if (ring.transport->pending_bytes() + missing >= threshold) {
    ring.transport->post_soon();
  } else {
    mark_dirty(ring);
  }
}

void SendSide::frame_opened(OutStream& stream) {
  stream.ring.open_stream = &stream;
  mark_dirty(stream.ring);
}

void SendSide::close(OutStream& stream) {
  if (!stream.frame.is_open()) return;
  const uint32_t bytes = stream.frame.payload_bytes();
  if (bytes == 0) return abandon(stream);
  const uint32_t rows = stream.frame.rows();
  uint32_t length = 0;
  std::unique_ptr<QueuedFrame> queued = stream.frame.close(stream.slot, length);
  stream.ring.open_stream = nullptr;
  stream.sent.add(rows, bytes);
  count(worker_.counters.rows_sent, rows);
  if (queued == nullptr) return commit(stream.ring, length);
  worker_.overflow.shrink(queued->stored, length);
  enqueue(std::move(queued));
}

void SendSide::abandon(OutStream& stream) noexcept {
  if (!stream.frame.is_open()) return;
  stream.frame.abandon();
  stream.ring.open_stream = nullptr;
}

void SendSide::mark_dirty(OutRing& ring) {
  if (ring.dirty) return;
  ring.dirty = true;
  dirty_.push_back(&ring);
}

// --- flushing

void SendSide::flush() {
  post_open_frames();
  worker_.membership.flush_network();
}

void SendSide::post_open_frames() {
  if (has_queued()) send_queued();
  // Closing a frame can mark its ring again, but a ring that is still marked is not added twice.
  size_t kept = 0;
  for (size_t i = 0; i < dirty_.size(); ++i) {
    OutRing& ring = *dirty_[i];
    ring.dirty = post_open_frame(ring);
    if (ring.dirty) dirty_[kept++] = &ring;
  }
  dirty_.resize(kept);
}

// Closes the open frame of a ring and starts the transfer. The frame stays open in two cases: it lies in overflow and
// would only join a queue that has not emptied, where it can as well take more rows; or a row is being written in place
// in it. Returns whether a frame is still open.
bool SendSide::post_open_frame(OutRing& ring) {
  if (!ring.queue_empty()) send_queued(ring);
  const bool would_queue = !ring.queue_empty() && ring.open_stream != nullptr &&
                           ring.open_stream->frame.is_in_overflow();
  if (ring.open_stream != nullptr && !ring.is_row_claimed() && !would_queue) {
    close_open_frame(ring);
    if (!ring.queue_empty()) send_queued(ring);
  }
  ring.transport->post_soon();
  return ring.open_stream != nullptr;
}

// --- the queues of the outgoing overflow

void SendSide::enqueue(std::unique_ptr<QueuedFrame> frame) {
  OutRing& ring = frame->stream->ring;
  if (ring.queue_empty()) ++queued_rings_;
  ++frame->stream->queued;
  count(worker_.counters.frames_out_overflow);
  count(worker_.counters.bytes_out_overflow, frame->stored.bytes);
  frame->stream->sent.add_queued(frame->row_count, frame->bytes_of_rows());
  ring.enqueue(std::move(frame));
}

void SendSide::drop_queued(OutStream& stream, bool data_only) {
  OutRing& ring = stream.ring;
  if (stream.queued == 0) return;
  std::unique_ptr<QueuedFrame> rest;
  QueuedFrame* rest_last = nullptr;
  while (!ring.queue_empty()) {
    std::unique_ptr<QueuedFrame> frame = ring.dequeue();
    const bool control =
        frame->kind == wire::FrameKind::open || frame->kind == wire::FrameKind::finish;
    // A large row that was sent in part has to be completed: its receiver would take the frames that follow for
    // the rest of it.
    if (frame->stream == &stream && !(data_only && (control || frame->sent_bytes > 0))) {
      --stream.queued;
      if (frame->row_count > 0) stream.sent.take_back(frame->row_count, frame->bytes_of_rows());
      count(worker_.counters.rows_dropped, frame->row_count);
      continue;
    }
    QueuedFrame* const added = frame.get();
    (rest_last != nullptr ? rest_last->next : rest) = std::move(frame);
    rest_last = added;
  }
  ring.queue = std::move(rest);
  ring.queue_last = rest_last;
  if (ring.queue_empty()) --queued_rings_;
}

void SendSide::send_queued() {
  for (auto& [node, rings] : rings_) {
    for (OutRing& ring : rings) {
      if (!ring.queue_empty()) send_queued(ring);
    }
  }
}

bool SendSide::send_queued(OutRing& ring) {
  if (ring.queue_empty()) return true;
  while (!ring.queue_empty() && send_first_queued(ring)) {
  }
  ring.transport->post();  // rows that were queued have waited long enough: no threshold
  if (!ring.queue_empty()) return false;
  --queued_rings_;
  return true;
}

// Sends the first queued frame or, of a large row, as much as fits into one frame. False if there is no room.
bool SendSide::send_first_queued(OutRing& ring) {
  QueuedFrame& frame = *ring.queue;
  const bool large = frame.kind == wire::FrameKind::fragment;
  constexpr uint32_t kFragmentOverhead = sizeof(FrameHeader) + sizeof(wire::FragmentPayload);
  const uint64_t rest = frame.row_bytes - frame.sent_bytes;
  const auto length = static_cast<uint32_t>(
      large ? std::min<uint64_t>(kFragmentOverhead + rest, ring.transport->frame_limit())
            : sizeof(FrameHeader) + frame.payload_bytes);
  const transport::Claim place = claim(ring, length, length);
  if (place.bytes == 0) return false;
  FrameHeader header{};
  header.length = length;
  header.kind = frame.kind;
  header.slot = frame.stream->slot;
  header.row_count = frame.row_count;
  std::byte* const payload = place.data + sizeof header;
  if (large) {
    const uint32_t bytes = length - kFragmentOverhead;
    const wire::FragmentPayload fragment{frame.row_bytes, frame.sent_bytes};
    std::memcpy(payload, &fragment, sizeof fragment);
    std::memcpy(payload + sizeof fragment, frame.stored.memory + frame.sent_bytes, bytes);
    frame.sent_bytes += bytes;
    header.row_count = frame.sent_bytes == frame.row_bytes ? 1 : 0;
  } else {
    std::memcpy(payload, frame.stored.memory + sizeof header, frame.payload_bytes);
  }
  std::memcpy(place.data, &header, sizeof header);
  ring.transport->commit(length);
  wait_loop_.progressed();
  if (!large || frame.sent_bytes == frame.row_bytes) --ring.dequeue()->stream->queued;
  return true;
}

// --- what the worker is blocked on

Outcome SendSide::blocked_on_room(const OutStream& stream) noexcept {
  count(stream.ring.counters->no_room);
  count(stream.sent.no_room);
  return operation_.blocked_on().room(stream.shuffle.counts(), stream.ring.receiver);
}

Outcome SendSide::blocked_on_queues(const Query& query) noexcept {
  for (const auto& [node, rings] : rings_) {
    for (const OutRing& ring : rings) {
      for (const QueuedFrame* frame = ring.queue.get(); frame != nullptr;
           frame = frame->next.get()) {
        if (frame->stream->shuffle.query().get() == &query) return blocked_on_room(*frame->stream);
      }
    }
  }
  return Outcome::would_wait;
}

// --- lost nodes

void SendSide::drop_rings(uint32_t node) {
  for (OutRing& ring : rings_of(node)) {
    if (ring.open_stream != nullptr && !ring.is_row_claimed()) {
      ShuffleContext& shuffle = ring.open_stream->shuffle;
      worker_.queries.lose_rows(*shuffle.query(), node);
      shuffle.drop_rows();
    }
    while (!ring.queue_empty()) {
      OutStream& stream = *ring.queue->stream;
      worker_.queries.lose_rows(*stream.shuffle.query(), node);
      drop_queued(stream, false);
    }
  }
}

}  // namespace faro::shuffle
