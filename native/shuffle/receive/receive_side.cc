#include "shuffle/receive/receive_side.h"

#include <algorithm>
#include <new>
#include <utility>

#include "session/resources.h"

namespace faro::shuffle {

// With its places in the lists of rings to look at, two, and of releases to tell.
static_assert(sizeof(InRing) + 3 * sizeof(void*) <= session::kIncomingLaneRingBytes);
static_assert(sizeof(Binding) <= session::kLaneSlotBytes);

ReceiveSide::ReceiveSide(const WorkerContext& worker, NodeEnd* node_end, Operation& operation)
    : worker_(worker),
      ready_(worker.membership.ready_set(worker.local_index)),
      frames_(worker),
      inboxes_(worker, frames_),
      agreement_(worker, inboxes_),
      dispatch_(worker, inboxes_, frames_, agreement_),
      fragments_(worker, operation, frames_),
      spill_(worker, operation, frames_) {
  if (node_end != nullptr)
    at_node_.emplace(worker_, *node_end, operation, rings_, dispatch_, frames_, spill_);
}

// The ends of the rings belong to links: LinkLanes sets `transport`.
std::span<InRing> ReceiveSide::rings_of(uint32_t node) {
  if (const auto made = rings_.find(node); made != rings_.end()) return made->second;
  constexpr uint32_t kPerGroup = ring::ReadySet::kRingsPerGroup;
  const session::Membership& membership = worker_.membership;
  const session::Node& peer = membership.nodes()[node];
  const ring::Layout layout = membership.incoming_layout(node);
  const uint32_t first_ready = membership.first_ready(node, worker_.local_index);
  const uint32_t own = worker_.settings.lanes_end_at_workers() ? layout.rings_of_receiver() : 0;
  const uint32_t shares = at_node_ ? layout.rings_of_receiver() : 0;
  std::vector<InRing> rings(size_t{own} + shares);
  // All that can fail comes first.
  ring_count_ += rings.size();
  backlog_.reserve(ring_count_ * 2);
  frames_.reserve(ring_count_);
  const uint32_t groups = (first_ready + layout.rings_of_receiver() + kPerGroup - 1) / kPerGroup;
  if (ring_by_ready_.size() < groups) ring_by_ready_.resize(groups);
  for (uint32_t group = first_ready / kPerGroup; group < groups; ++group)
    ring_by_ready_[group] = std::make_unique<RingGroup>();
  std::vector<InRing>& added = rings_.emplace(node, std::move(rings)).first->second;
  for (uint32_t i = 0; i < added.size(); ++i) {
    const uint32_t index = i % layout.rings_of_receiver();
    added[i].sender = peer.first_worker + index / layout.rings_per_lane;
    added[i].sender_node = node;
    const uint32_t number = first_ready + index;
    if (i < own) (*ring_by_ready_[number / kPerGroup])[number % kPerGroup] = &added[i];
  }
  return added;
}

void ReceiveSide::forget_rings(uint32_t node) noexcept {
  constexpr uint32_t kPerGroup = ring::ReadySet::kRingsPerGroup;
  std::erase_if(backlog_, [&](const InRing* ring) { return ring->sender_node == node; });
  frames_.forget_releases(node);
  ring_count_ -= rings_.at(node).size();
  const uint32_t rings = worker_.membership.incoming_layout(node).rings_of_receiver();
  const uint32_t first = worker_.membership.first_ready(node, worker_.local_index) / kPerGroup;
  for (uint32_t group = 0; group * kPerGroup < rings; ++group)
    ring_by_ready_[first + group] = nullptr;
  rings_.erase(node);
}

// A hostile shm peer can set any bit of its link's words.
InRing* ReceiveSide::marked(uint32_t number) const noexcept {
  const uint32_t group = number / ring::ReadySet::kRingsPerGroup;
  if (group >= ring_by_ready_.size() || ring_by_ready_[group] == nullptr) return nullptr;
  return (*ring_by_ready_[group])[number % ring::ReadySet::kRingsPerGroup];
}

bool ReceiveSide::poll(const NodeShare::Wanted& wanted) {
  has_polled_ = true;
  bool any = at_node_ && at_node_->take(wanted);
  const size_t backlog = backlog_.size();  // those added while visiting are for the next time
  ready_.take([&](uint32_t number) {
    if (InRing* const ring = marked(number)) any |= visit(*ring);
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
        // Earlier releases may not have been worth a read notification. With this frame the sender
        // has less room and may be blocked on them, so flush_releases is called for this ring
        // before the worker sleeps.
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

void ReceiveSide::look_at(uint32_t node) {
  for (InRing& ring : rings_of(node)) look_again(ring);
}

bool ReceiveSide::has_blocked_sender(Haste after) const noexcept {
  if (after >= Haste::soon && at_node_ && at_node_->has_blocked_sender()) return true;
  const auto blocks = [&](const InRing& ring) {
    return ring.blocks_sender() && spill_.has_any(ring, after);
  };
  return std::ranges::any_of(
      rings_, [&](const auto& of) { return std::ranges::any_of(of.second, blocks); });
}

bool ReceiveSide::spill_blocked(Haste after) {
  // Mostly there is nothing urgent, and each look of a wait asks.
  const auto may_be = [this](const Inbox& inbox) {
    return (at_node_ || inbox.active() != nullptr) && spill_.may_be_urgent(inbox);
  };
  if (after == Haste::at_once && !inboxes_.any(may_be)) return false;
  bool spilled = at_node_ && at_node_->spill(after, [](const InRing&) { return true; });
  for (auto& [node, rings] : rings_) {
    for (InRing& ring : rings) {
      if (ring.blocks_sender()) spilled |= spill_.spill(ring, after);
    }
  }
  return spilled;
}

bool ReceiveSide::spill_own() {
  const auto is_own = [this](const InRing& ring) { return ring.sender == worker_.number; };
  bool spilled = at_node_ && at_node_->spill(Haste::late, is_own);
  for (InRing& ring : rings_of(worker_.membership.node())) {
    if (ring.sender != worker_.number) continue;
    spilled |= spill_.spill(ring, Haste::late);
    ring.transport->flush_releases();
  }
  return spilled;
}

// All is then as if the workers of that node had never sent anything. This fails no query: a
// misbehaving node may have sent rows for queries in which it takes no part. QueryTable decides
// which queries the loss fails.
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
