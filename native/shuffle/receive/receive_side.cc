#include "shuffle/receive/receive_side.h"

#include <algorithm>
#include <new>
#include <utility>

namespace faro::shuffle {

ReceiveSide::ReceiveSide(const WorkerContext& worker, Operation& operation, WaitLoop& wait_loop)
    : worker_(worker),
      ready_(worker.membership.ready_set(worker.local_index)),
      rings_(size_t{worker.membership.worker_count()} * worker.settings.rings_per_lane),
      frames_(worker, rings_.size()),
      inboxes_(worker, frames_),
      agreement_(worker, inboxes_),
      dispatch_(worker, inboxes_, frames_, agreement_),
      delivery_(worker, operation, wait_loop, inboxes_, frames_),
      spill_(worker, operation, frames_) {
  make_rings();
  backlog_.reserve(rings_.size() * 2);
}

// The ends of the rings belong to links: LinkLanes sets `transport`.
void ReceiveSide::make_rings() {
  const session::Membership& membership = worker_.membership;
  const auto rings_per_lane = static_cast<uint32_t>(worker_.settings.rings_per_lane);
  for (const session::Node& peer : membership.nodes()) {
    const ring::Layout layout = membership.incoming_layout(peer.number);
    const uint32_t first_ready = membership.first_ready(peer.number, worker_.local_index);
    for (uint32_t remote = 0; remote < peer.worker_count; ++remote) {
      for (uint32_t k = 0; k < rings_per_lane; ++k) {
        const uint32_t sender = peer.first_worker + remote;
        InRing& ring = rings_[size_t{sender} * rings_per_lane + k];
        ring.sender = sender;
        ring.sender_node = peer.number;
        ring.ring_bytes = layout.ring_bytes;
        const uint32_t number =
            first_ready + layout.index_at_receiver(layout.ring(remote, worker_.local_index, k));
        if (number >= ring_by_ready_.size()) ring_by_ready_.resize(number + 1);
        ring_by_ready_[number] = &ring;
      }
    }
  }
}

std::span<InRing> ReceiveSide::rings_of(uint32_t node) noexcept {
  const session::Node& peer = worker_.membership.nodes()[node];
  const size_t rings_per_lane = worker_.settings.rings_per_lane;
  return std::span(rings_).subspan(peer.first_worker * rings_per_lane,
                                   peer.worker_count * rings_per_lane);
}

bool ReceiveSide::poll() {
  bool any = false;
  const size_t backlog = backlog_.size();  // those added while visiting are for the next time
  ready_.take([&](uint32_t number) {
    // A hostile shm peer can set any bit of its link's words.
    if (number < ring_by_ready_.size() && ring_by_ready_[number] != nullptr) {
      any |= visit(*ring_by_ready_[number]);
    }
  });
  for (size_t i = 0; i < backlog; ++i) {
    backlog_[i]->backlog = false;
    any |= visit(*backlog_[i]);
  }
  backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<ptrdiff_t>(backlog));
  if (std::exchange(lacked_memory_, false)) throw std::bad_alloc();
  return any;
}

bool ReceiveSide::visit(InRing& ring) noexcept {
  bool any = false;
  transport::FrameView view;
  if (ring.has_undispatched) {
    if (!try_dispatch(ring, ring.undispatched)) return false;
    ring.has_undispatched = false;
    any = true;
  }
  while (!ring.broken) {
    switch (ring.transport->next(view)) {
      case transport::Next::frame:
        any = true;
        // Earlier releases may not have been worth a read notification. With this frame the sender has less room and
        // may be blocked on them, so flush_releases is called for this ring before the worker sleeps.
        frames_.note_unsent_release(ring);
        if (!try_dispatch(ring, view)) {
          ring.has_undispatched = true;
          ring.undispatched = view;
          return any;
        }
        break;
      case transport::Next::nothing:
        return any;
      case transport::Next::full:
        look_again(ring);
        return any;
      case transport::Next::invalid:
        ring.broken = true;
        return any;
    }
  }
  return any;
}

// If there is no memory for its node, the frame waits in the ring, and so do the frames behind it.
bool ReceiveSide::try_dispatch(InRing& ring, const transport::FrameView& view) noexcept {
  try {
    dispatch_.dispatch(ring, view);
    return true;
  } catch (const std::bad_alloc&) {
    lacked_memory_ = true;
    look_again(ring);
    return false;
  }
}

void ReceiveSide::look_again(InRing& ring) noexcept {
  if (ring.backlog) return;
  ring.backlog = true;
  backlog_.push_back(&ring);
}

void ReceiveSide::look_at(uint32_t node) noexcept {
  for (InRing& ring : rings_of(node)) look_again(ring);
}

bool ReceiveSide::has_blocked_sender() const noexcept {
  return std::ranges::any_of(rings_, [](const InRing& ring) { return ring.blocks_sender(); });
}

bool ReceiveSide::spill_blocked() {
  bool spilled = false;
  for (InRing& ring : rings_) {
    if (ring.blocks_sender()) spilled |= spill_.spill(ring);
  }
  return spilled;
}

bool ReceiveSide::spill_own() {
  bool spilled = false;
  for (InRing& ring : rings_of(worker_.membership.node())) {
    if (ring.sender != worker_.number) continue;
    spilled |= spill_.spill(ring);
    ring.transport->flush_releases();
  }
  return spilled;
}

// As if the workers of that node had never sent anything. This fails no query: a misbehaving node may have sent rows
// for queries in which it takes no part. QueryTable decides which queries the loss fails.
void ReceiveSide::abandon(uint32_t node) {
  for (InRing& ring : rings_of(node)) {
    while (ring.first != nullptr) inboxes_.forget(*ring.first->inbox, ring.sender);
    for (const Binding& binding : ring.slots) {
      if (binding.state == Binding::State::bound) inboxes_.forget(*binding.inbox, ring.sender);
    }
    inboxes_.forget_unopened(ring.sender);
  }
}

}  // namespace faro::shuffle
