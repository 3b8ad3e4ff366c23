#include "shuffle/receive/receive_side.h"

#include <algorithm>
#include <new>
#include <utility>

namespace faro::shuffle {

ReceiveSide::ReceiveSide(const WorkerContext& worker, Operation& operation, WaitLoop& wait_loop)
    : worker_(worker),
      ready_(worker.membership.ready_set(worker.local_index)),
      lanes_(size_t{worker.membership.worker_count()} * worker.settings.rings_per_lane),
      frames_(worker, lanes_.size()),
      inboxes_(worker, frames_),
      agreement_(worker, inboxes_),
      dispatch_(worker, inboxes_, frames_, agreement_),
      delivery_(worker, operation, wait_loop, inboxes_, frames_),
      spill_(worker, operation, frames_) {
  make_lanes();
  backlog_.reserve(lanes_.size() * 2);
}

// Without their rings, which are those of links.
void ReceiveSide::make_lanes() {
  const session::Membership& membership = worker_.membership;
  const auto rings_per_lane = static_cast<uint32_t>(worker_.settings.rings_per_lane);
  for (const session::Node& peer : membership.nodes()) {
    const ring::Layout layout = membership.incoming_layout(peer.number);
    const uint32_t first_ready = membership.first_ready(peer.number, worker_.local_index);
    for (uint32_t remote = 0; remote < peer.worker_count; ++remote) {
      for (uint32_t k = 0; k < rings_per_lane; ++k) {
        const uint32_t sender = peer.first_worker + remote;
        InRing& lane = lanes_[size_t{sender} * rings_per_lane + k];
        lane.sender = sender;
        lane.sender_node = peer.number;
        lane.ring_bytes = layout.ring_bytes;
        const uint32_t number =
            first_ready + layout.index_at_receiver(layout.ring(remote, worker_.local_index, k));
        if (number >= lane_by_ready_.size()) lane_by_ready_.resize(number + 1);
        lane_by_ready_[number] = &lane;
      }
    }
  }
}

std::span<InRing> ReceiveSide::rings_of(uint32_t node) noexcept {
  const session::Node& peer = worker_.membership.nodes()[node];
  const size_t rings_per_lane = worker_.settings.rings_per_lane;
  return std::span(lanes_).subspan(peer.first_worker * rings_per_lane,
                                   peer.worker_count * rings_per_lane);
}

bool ReceiveSide::poll() {
  bool any = false;
  const size_t backlog = backlog_.size();  // those added while visiting are for the next time
  ready_.take([&](uint32_t number) {
    // A hostile shm peer can set any bit of its link's words.
    if (number < lane_by_ready_.size() && lane_by_ready_[number] != nullptr) {
      any |= visit(*lane_by_ready_[number]);
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

bool ReceiveSide::visit(InRing& lane) noexcept {
  bool any = false;
  transport::FrameView view;
  if (lane.has_undispatched) {
    if (!try_dispatch(lane, lane.undispatched)) return false;
    lane.has_undispatched = false;
    any = true;
  }
  while (!lane.broken) {
    switch (lane.transport->next(view)) {
      case transport::Next::frame:
        any = true;
        // What arrives can make a release urgent that was not before: its sender has less room now.
        frames_.note_unsent_release(lane);
        if (!try_dispatch(lane, view)) {
          lane.has_undispatched = true;
          lane.undispatched = view;
          return any;
        }
        break;
      case transport::Next::nothing:
        return any;
      case transport::Next::full:
        look_again(lane);
        return any;
      case transport::Next::invalid:
        lane.broken = true;
        return any;
    }
  }
  return any;
}

// Without memory for it the frame waits, and with it those behind it.
bool ReceiveSide::try_dispatch(InRing& lane, const transport::FrameView& view) noexcept {
  try {
    dispatch_.dispatch(lane, view);
    return true;
  } catch (const std::bad_alloc&) {
    lacked_memory_ = true;
    look_again(lane);
    return false;
  }
}

void ReceiveSide::look_again(InRing& lane) noexcept {
  if (lane.backlog) return;
  lane.backlog = true;
  backlog_.push_back(&lane);
}

bool ReceiveSide::has_blocked_sender() const noexcept {
  return std::ranges::any_of(lanes_, [](const InRing& lane) { return lane.blocks_sender(); });
}

bool ReceiveSide::spill_blocked() {
  bool spilled = false;
  for (InRing& lane : lanes_) {
    if (lane.blocks_sender()) spilled |= spill_.spill(lane);
  }
  return spilled;
}

bool ReceiveSide::spill_own() {
  bool spilled = false;
  for (InRing& lane : rings_of(worker_.membership.node())) {
    if (lane.sender != worker_.number) continue;
    spilled |= spill_.spill(lane);
    lane.transport->flush_releases();
  }
  return spilled;
}

// Rows that came may also be of queries that the lost node had no part in, or made up and that began since.
void ReceiveSide::abandon(uint32_t node) {
  for (InRing& lane : rings_of(node)) {
    while (lane.first != nullptr) inboxes_.forget(*lane.first->inbox, lane.sender);
    for (const Binding& binding : lane.slots) {
      if (binding.state == Binding::State::bound) inboxes_.forget(*binding.inbox, lane.sender);
    }
  }
}

}  // namespace faro::shuffle
