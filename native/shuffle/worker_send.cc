// WorkerCore, the sending half: transfers, flushing, and the queues of the outgoing overflow.
#include "shuffle/worker_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shuffle/node_core.h"
#include "shuffle/shuffle_core.h"
#include "transport/mirrored_ring.h"

namespace faro::detail {

using transport::count;

OutLane& WorkerCore::lane_to(uint32_t receiver_worker, uint32_t stage) noexcept {
  const auto rings_per_lane = static_cast<uint32_t>(node_.settings().rings_per_lane);
  return out_lanes_[size_t{receiver_worker} * rings_per_lane + stage % rings_per_lane];
}

void WorkerCore::mark_dirty(OutLane& lane) {
  if (lane.dirty) return;
  lane.dirty = true;
  dirty_.push_back(&lane);
}

void WorkerCore::frame_committed(OutLane& lane) {
  // What is missing may be too little for another row, or make a frame of one: full frames of rows of
  // 100 bytes are pending up to 128 bytes below the threshold of 16 KiB.
  const uint32_t frame = lane.ring->frame_limit();
  const uint64_t threshold = node_.settings().threshold_bytes;
  const uint64_t missing = threshold >= frame ? frame / 8 : 0;
  if (lane.ring->pending_bytes() + missing >= threshold) {
    lane.ring->post_soon();
  } else {
    mark_dirty(lane);
  }
}

void WorkerCore::flush() {
  post_dirty();
  node_.membership().flush_network();
}

void WorkerCore::post_dirty() {
  if (queued_lanes_ > 0) pump_all();
  // close_frame can mark lanes dirty again; those are in the list already. A frame that could only join
  // the queue of its ring stays open, and takes more rows.
  size_t kept = 0;
  for (size_t i = 0; i < dirty_.size(); ++i) {
    OutLane& lane = *dirty_[i];
    if (!lane.queue_empty()) pump(lane);
    const bool would_queue = !lane.queue_empty() && lane.owner != nullptr &&
                             lane.owner->has_frame_in_overflow(lane.owner_receiver);
    if (lane.owner != nullptr && !lane.claimed && !would_queue) {
      lane.owner->close_frame(lane.owner_receiver);
      if (!lane.queue_empty()) pump(lane);
    }
    lane.ring->post_soon();
    lane.dirty = lane.owner != nullptr;  // such a frame, or an open claim
    if (lane.dirty) dirty_[kept++] = &lane;
  }
  dirty_.resize(kept);
}

bool WorkerCore::make_room_in_own_ring(OutLane& lane) {
  if (!lane.to_self || held() > 0 || !may_wait_) return false;
  lane.ring->post();
  gather();
  bool moved = false;
  for (InLane& in : in_lanes_) {
    if (in.sender != number_) continue;
    moved |= move_aside(in);
    in.ring->flush_releases();
  }
  return moved;
}

void WorkerCore::enqueue(OutLane& lane, std::unique_ptr<QueuedFrame> frame) {
  if (lane.queue_empty()) ++queued_lanes_;
  frame->core->queued(+1);
  count(counters_.frames_out_overflow);
  count(counters_.bytes_out_overflow, frame->stored.bytes);
  lane.enqueue(std::move(frame));
}

void WorkerCore::drop_queued(OutLane& lane, const ShuffleCore& core, bool data_only) {
  if (lane.queue_empty()) return;
  std::unique_ptr<QueuedFrame> rest;
  QueuedFrame* rest_last = nullptr;
  while (!lane.queue_empty()) {
    std::unique_ptr<QueuedFrame> frame = lane.dequeue();
    const bool control =
        frame->kind == wire::FrameKind::open || frame->kind == wire::FrameKind::finish;
    // A large row of which parts were sent goes on, or its receiver would take what follows for the
    // rest.
    if (frame->core == &core && !(data_only && (control || frame->sent_bytes > 0))) {
      frame->core->dropped(frame->receiver, frame->row_count);
      frame->core->queued(-1);
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

void WorkerCore::pump_all() {
  for (OutLane& lane : out_lanes_) {
    if (!lane.queue_empty()) pump(lane);
  }
  sweep();
}

bool WorkerCore::pump(OutLane& lane) {
  using wire::FrameHeader;
  if (lane.queue_empty()) return true;
  const uint32_t limit = lane.ring->frame_limit();
  while (!lane.queue_empty()) {
    QueuedFrame& frame = *lane.queue;
    const bool large = frame.kind == wire::FrameKind::fragment;
    constexpr uint32_t kFragmentOverhead = sizeof(FrameHeader) + sizeof(wire::FragmentPayload);
    const uint64_t rest = frame.row_bytes - frame.sent_bytes;
    const auto whole =
        static_cast<uint32_t>(large ? std::min<uint64_t>(kFragmentOverhead + rest, limit)
                                    : sizeof(FrameHeader) + frame.payload_bytes);
    const transport::Claim claim = lane.ring->claim(whole, whole);
    if (claim.bytes == 0) {
      if (!make_room_in_own_ring(lane)) break;
      continue;
    }
    FrameHeader header{};
    header.length = whole;
    header.kind = frame.kind;
    header.slot = frame.slot;
    std::byte* const payload = claim.data + sizeof header;
    if (large) {
      const uint32_t bytes = whole - kFragmentOverhead;
      const wire::FragmentPayload fragment{frame.row_bytes, frame.sent_bytes};
      std::memcpy(payload, &fragment, sizeof fragment);
      std::memcpy(payload + sizeof fragment, frame.stored.memory + frame.sent_bytes, bytes);
      frame.sent_bytes += bytes;
      header.row_count = frame.sent_bytes == frame.row_bytes ? 1 : 0;
    } else {
      header.row_count = frame.row_count;
      std::memcpy(payload, frame.stored.memory + sizeof header, frame.payload_bytes);
    }
    std::memcpy(claim.data, &header, sizeof header);
    lane.ring->commit(whole);
    progressed();
    if (large && frame.sent_bytes < frame.row_bytes) continue;
    lane.dequeue()->core->queued(-1);
  }
  lane.ring->post();  // who is in overflow has no reason to wait for a threshold
  if (!lane.queue_empty()) return false;
  --queued_lanes_;
  return true;
}

}  // namespace faro::detail
