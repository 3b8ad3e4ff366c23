#include "shuffle/send/send_side.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace faro::shuffle {

using counters::count;
using wire::FrameHeader;

SendSide::SendSide(const WorkerContext& worker, Operation& operation, WaitLoop& wait_loop,
                   ReceiveSide& receive_side)
    : worker_(worker),
      operation_(operation),
      wait_loop_(wait_loop),
      receive_side_(receive_side),
      lanes_(size_t{worker.membership.worker_count()} * worker.settings.rings_per_lane) {
  make_lanes();
  dirty_.reserve(lanes_.size());
}

void SendSide::drop_queues() noexcept {
  for (OutRing& lane : lanes_) {
    while (!lane.queue_empty()) lane.dequeue();
  }
}

// Without their rings, which are those of links.
void SendSide::make_lanes() {
  const auto rings_per_lane = static_cast<uint32_t>(worker_.settings.rings_per_lane);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const auto receiver = static_cast<uint32_t>(i / rings_per_lane);
    lanes_[i].receiver = receiver;
    lanes_[i].counters = &worker_.membership.counters().outgoing(
        worker_.local_index, receiver, static_cast<uint32_t>(i % rings_per_lane));
    lanes_[i].to_self = receiver == worker_.number;
  }
}

OutRing& SendSide::ring_to(uint32_t receiver_worker, uint32_t stage) noexcept {
  const auto rings_per_lane = static_cast<uint32_t>(worker_.settings.rings_per_lane);
  return lanes_[size_t{receiver_worker} * rings_per_lane + stage % rings_per_lane];
}

std::span<OutRing> SendSide::rings_of(uint32_t node) noexcept {
  const session::Node& peer = worker_.membership.nodes()[node];
  const size_t rings_per_lane = worker_.settings.rings_per_lane;
  return std::span(lanes_).subspan(peer.first_worker * rings_per_lane,
                                   peer.worker_count * rings_per_lane);
}

// --- frames

transport::Claim SendSide::claim(OutRing& lane, uint32_t least_bytes, uint32_t most_bytes) {
  for (;;) {
    const transport::Claim claim = lane.transport->claim(least_bytes, most_bytes);
    if (claim.bytes != 0 || !make_room_in_own_ring(lane)) return claim;
  }
}

// Only this worker can read that ring. Only in a call that waits: after one that tries the engine can poll.
bool SendSide::make_room_in_own_ring(OutRing& lane) {
  if (!lane.to_self || holds_batches() || !wait_loop_.call_waits()) return false;
  lane.transport->post();
  (void)receive_side_.poll();
  return receive_side_.spill_own();
}

void SendSide::commit(OutRing& lane, uint32_t length) {
  lane.transport->commit(length);
  // What is missing may be too little for another row, or make a frame of one: full frames of rows of
  // 100 bytes are pending up to 128 bytes below the threshold of 16 KiB.
  const uint32_t frame = lane.transport->frame_limit();
  const uint64_t threshold = worker_.settings.threshold_bytes;
  const uint64_t missing = threshold >= frame ? frame / 8 : 0;
  if (lane.transport->pending_bytes() + missing >= threshold) {
    lane.transport->post_soon();
  } else {
    mark_dirty(lane);
  }
}

void SendSide::opened(OutStream& stream) {
  stream.ring.open = &stream;
  mark_dirty(stream.ring);
}

void SendSide::close(OutStream& stream) {
  if (!stream.frame.is_open()) return;
  if (stream.frame.payload_bytes() == 0) return abandon(stream);
  const uint32_t rows = stream.frame.rows();
  uint32_t length = 0;
  std::unique_ptr<QueuedFrame> queued = stream.frame.close(stream.slot, length);
  stream.ring.open = nullptr;
  stream.rows_sent += rows;
  count(worker_.counters.rows_sent, rows);
  if (queued == nullptr) return commit(stream.ring, length);
  worker_.overflow.shrink(queued->stored, length);
  enqueue(std::move(queued));
}

void SendSide::abandon(OutStream& stream) noexcept {
  if (!stream.frame.is_open()) return;
  stream.frame.abandon();
  stream.ring.open = nullptr;
}

void SendSide::mark_dirty(OutRing& lane) {
  if (lane.dirty) return;
  lane.dirty = true;
  dirty_.push_back(&lane);
}

// --- flushing

void SendSide::flush() {
  post_open_frames();
  worker_.membership.flush_network();
}

void SendSide::post_open_frames() {
  if (has_queued()) send_queued();
  // Closing a frame can mark lanes dirty again; those are in the list already.
  size_t kept = 0;
  for (size_t i = 0; i < dirty_.size(); ++i) {
    OutRing& lane = *dirty_[i];
    lane.dirty = post_open_frame(lane);
    if (lane.dirty) dirty_[kept++] = &lane;
  }
  dirty_.resize(kept);
}

// Returns whether its frame stays open: one that could only join the queue takes more rows, and a claim is not over.
bool SendSide::post_open_frame(OutRing& lane) {
  if (!lane.queue_empty()) send_queued(lane);
  const bool would_queue =
      !lane.queue_empty() && lane.open != nullptr && lane.open->frame.is_in_overflow();
  if (lane.open != nullptr && !lane.is_claimed() && !would_queue) {
    close_open_frame(lane);
    if (!lane.queue_empty()) send_queued(lane);
  }
  lane.transport->post_soon();
  return lane.open != nullptr;
}

// --- the queues of the outgoing overflow

void SendSide::enqueue(std::unique_ptr<QueuedFrame> frame) {
  OutRing& lane = frame->stream->ring;
  if (lane.queue_empty()) ++queued_lanes_;
  ++frame->stream->queued;
  count(worker_.counters.frames_out_overflow);
  count(worker_.counters.bytes_out_overflow, frame->stored.bytes);
  lane.enqueue(std::move(frame));
}

void SendSide::drop_queued(OutStream& stream, bool data_only) {
  OutRing& lane = stream.ring;
  if (stream.queued == 0) return;
  std::unique_ptr<QueuedFrame> rest;
  QueuedFrame* rest_last = nullptr;
  while (!lane.queue_empty()) {
    std::unique_ptr<QueuedFrame> frame = lane.dequeue();
    const bool control =
        frame->kind == wire::FrameKind::open || frame->kind == wire::FrameKind::finish;
    // A large row of which parts were sent goes on, or its receiver would take what follows for the
    // rest.
    if (frame->stream == &stream && !(data_only && (control || frame->sent_bytes > 0))) {
      --stream.queued;
      stream.rows_sent -= frame->row_count;
      count(worker_.counters.rows_dropped, frame->row_count);
      continue;
    }
    QueuedFrame* const added = frame.get();
    (rest_last != nullptr ? rest_last->next : rest) = std::move(frame);
    rest_last = added;
  }
  lane.queue = std::move(rest);
  lane.queue_last = rest_last;
  if (lane.queue_empty()) --queued_lanes_;
}

void SendSide::send_queued() {
  for (OutRing& lane : lanes_) {
    if (!lane.queue_empty()) send_queued(lane);
  }
}

bool SendSide::send_queued(OutRing& lane) {
  if (lane.queue_empty()) return true;
  while (!lane.queue_empty() && send_first_queued(lane)) {
  }
  lane.transport->post();  // who is in overflow has no reason to wait for a threshold
  if (!lane.queue_empty()) return false;
  --queued_lanes_;
  return true;
}

// All of it, or of a large row as much as fits into one frame; false if there is no room.
bool SendSide::send_first_queued(OutRing& lane) {
  QueuedFrame& frame = *lane.queue;
  const bool large = frame.kind == wire::FrameKind::fragment;
  constexpr uint32_t kFragmentOverhead = sizeof(FrameHeader) + sizeof(wire::FragmentPayload);
  const uint64_t rest = frame.row_bytes - frame.sent_bytes;
  const auto length = static_cast<uint32_t>(
      large ? std::min<uint64_t>(kFragmentOverhead + rest, lane.transport->frame_limit())
            : sizeof(FrameHeader) + frame.payload_bytes);
  const transport::Claim place = claim(lane, length, length);
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
  lane.transport->commit(length);
  wait_loop_.progressed();
  if (!large || frame.sent_bytes == frame.row_bytes) --lane.dequeue()->stream->queued;
  return true;
}

// --- what the worker is blocked on

Outcome SendSide::blocked_on_room(const OutStream& stream) noexcept {
  count(stream.ring.counters->no_room);
  return operation_.blocked_on().room(stream.shuffle.query()->id, stream.shuffle.spec().stage,
                                      stream.ring.receiver);
}

Outcome SendSide::blocked_on_queues(const Query& query) noexcept {
  for (const OutRing& lane : lanes_) {
    for (const QueuedFrame* frame = lane.queue.get(); frame != nullptr; frame = frame->next.get()) {
      if (frame->stream->shuffle.query().get() == &query) return blocked_on_room(*frame->stream);
    }
  }
  return Outcome::would_wait;
}

// --- lost nodes

void SendSide::drop_lanes(uint32_t node) {
  for (OutRing& lane : rings_of(node)) {
    if (lane.open != nullptr && !lane.is_claimed()) {
      ShuffleContext& shuffle = lane.open->shuffle;
      worker_.queries.lose_rows(*shuffle.query(), node);
      shuffle.drop_rows();
    }
    while (!lane.queue_empty()) {
      OutStream& stream = *lane.queue->stream;
      worker_.queries.lose_rows(*stream.shuffle.query(), node);
      drop_queued(stream, false);
    }
  }
}

}  // namespace faro::shuffle
