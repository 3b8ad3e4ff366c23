#include "shuffle/link_lanes.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace faro::shuffle {

// Those whose rings are to be bound: they are linked, their rings are in use, or they are wanted for good.
std::set<uint32_t> LinkLanes::nodes() const {
  std::set<uint32_t> nodes = worker_.membership.linked();
  for (const auto& [node, rings] : receive_side_.rings()) nodes.insert(node);
  for (const session::Node& peer : worker_.membership.nodes()) {
    if (peer.wanted_for_good) nodes.insert(peer.number);
  }
  return nodes;
}

bool LinkLanes::is_wanted_for_good(uint32_t node) const noexcept {
  return worker_.membership.nodes()[node].wanted_for_good;
}

bool LinkLanes::rebind(bool uses_any) {
  const uint64_t changes = worker_.membership.link_changes();
  if (changes == changes_seen_ && bound_) return true;
  bool all = true;
  for (const uint32_t node : nodes()) {
    all &= rebind(node);
    if (!uses_any) forget_absent(node);
  }
  count_rebound();
  bound_ = true;
  if (all) changes_seen_ = changes;
  return all;
}

void LinkLanes::let_go_of_lost() {
  std::vector<uint32_t> lost;
  for (const auto& [node, rings] : receive_side_.rings()) {
    const std::shared_ptr<transport::DataLink>& bound = rings.front().link;
    if (bound == nullptr || bound->is_absent()) continue;
    if (bound != worker_.membership.link(node)) lost.push_back(node);
  }
  for (const uint32_t node : lost) {
    if (rebind(node)) forget_absent(node);
  }
}

// Nothing is open: what a node that is not linked has had rings for is not needed.
void LinkLanes::forget_absent(uint32_t node) noexcept {
  const InRing& first = receive_side_.rings_of(node).front();
  if (is_wanted_for_good(node) || !first.link->is_absent()) return;
  lanes_.forget(node);
  receive_side_.forget_rings(node);
}

Status LinkLanes::check(const ShuffleSpec& spec) {
  const bool is_current = worker_.membership.link_changes() == changes_seen_;
  std::set<uint32_t> nodes;
  for (const std::vector<uint32_t>* workers : {&spec.senders, &spec.receivers}) {
    for (const uint32_t worker : *workers) nodes.insert(worker_.queries.node_of_worker(worker));
  }
  for (const uint32_t node : nodes) {
    const bool is_bound = (is_current && receive_side_.has_rings(node)) || rebind(node);
    count_rebound();
    if (is_bound) continue;
    return base::error(Code::wrong_state,
                       "stage {}: worker {} still holds a batch or a claim of {} as it was before "
                       "it started again; release it first",
                       spec.stage, worker_.number, worker_.membership.nodes()[node].name);
  }
  return Status::Ok();
}

bool LinkLanes::rebind(uint32_t node) {
  std::shared_ptr<transport::DataLink> link = worker_.membership.link(node);
  const transport::DataLink* const bound = receive_side_.rings_of(node).front().link.get();
  if (link.get() == bound) return true;
  // What waits in the queue of a ring to a node that is linked only now is for this link; so is what waits for one that was
  // let go when nothing needed it.
  if (bound != nullptr && (is_wanted_for_good(node) || !bound->is_absent())) {
    // QueryTable decides which queries the loss fails. It learned of the loss before the link changed.
    receive_side_.abandon(node);
    if (!bound->held().load(std::memory_order_relaxed)) lanes_.lose(node);
    if (uses_rings(node)) return false;
  }
  bind(node, link);
  // Rows may have come, and been marked, before these rings were bound here.
  receive_side_.look_at(node);
  return true;
}

// The last worker that releases a link frees its memory.
void LinkLanes::bind(uint32_t node, const std::shared_ptr<transport::DataLink>& link) {
  rebound_ = true;
  session::Membership& membership = worker_.membership;
  const session::Node& peer = membership.nodes()[node];
  const ring::Layout out = membership.outgoing_layout(node);
  const ring::Layout in = membership.incoming_layout(node);
  const std::span<Lane> to = lanes_.to_node(node);
  const std::span<InRing> from = receive_side_.rings_of(node);
  ring::ReadySet& ready = membership.ready_set(worker_.local_index);
  const uint32_t first_group =
      membership.first_ready(node, worker_.local_index) / ring::ReadySet::kRingsPerGroup;
  const std::shared_ptr<NodeLink> at_node = at_node_end(node, link);
  // The ready words of the old link, before its memory is freed.
  for (uint32_t ring = 0; ring < in.rings_of_receiver(); ring += ring::ReadySet::kRingsPerGroup)
    ready.clear_external(first_group + ring / ring::ReadySet::kRingsPerGroup);
  for (uint32_t end = 0; end < out.receiver_ends; ++end) {
    const bool to_node = session::is_node_end(worker_.settings, out, end);
    const uint32_t worker = peer.first_worker + (to_node ? 0 : end);
    const uint32_t first_counted = to_node ? session::first_counted_of_node(worker_.settings) : 0;
    for (uint32_t k = 0; k < out.rings_per_lane; ++k) {
      Lane& lane = to[size_t{end} * out.rings_per_lane + k];
      lane.bind(link->outgoing(out.ring(worker_.local_index, end, k)), link->held());
      if (!link->is_absent() || peer.wanted_for_good) {
        lane.count_in(
            membership.counters().outgoing(worker_.local_index, worker, first_counted + k));
      }
    }
  }
  const uint32_t own = worker_.settings.lanes_end_at_workers() ? in.rings_of_receiver() : 0;
  for (uint32_t i = 0; i < from.size(); ++i) {
    const bool is_share = i >= own;
    const uint32_t index = is_share ? i - own : i;
    const uint32_t k = index % in.rings_per_lane;
    InRing& ring = from[i];
    if (is_share && at_node != nullptr) {
      ring.transport = &at_node->share(index, worker_.local_index);
    } else {
      // Any ring of an absent link is as good as another.
      ring.transport = &link->incoming(
          in.ring(index / in.rings_per_lane, is_share ? 0 : worker_.local_index, k));
    }
    // Where rings end at the node a worker takes slots as streams begin.
    const bool has_slots = !link->is_absent() && !is_share;
    ring.slots.assign(has_slots ? worker_.settings.shuffle_limit : 0, Binding{});
    ring.slot_owners.clear();
    ring.broken = false;
    if (link->is_absent() && ring.link == nullptr) continue;  // nothing was counted yet
    const uint32_t first_counted = is_share ? session::first_counted_of_node(worker_.settings) : 0;
    counters::set(membership.counters()
                      .incoming(worker_.local_index, ring.sender, first_counted + k)
                      .unreleased_bytes,
                  0);
  }
  if (own > 0) link->attach_ready(ready, first_group, worker_.local_index);
  // The node's end has its ready words of the link, and keeps the link for its shares.
  std::shared_ptr<transport::DataLink> kept = link;
  if (at_node != nullptr) kept = {at_node, link.get()};
  // Last: if there was no memory for something above, the next call does all of it again.
  for (InRing& ring : from) ring.link = kept;
}

std::shared_ptr<NodeLink> LinkLanes::at_node_end(uint32_t node,
                                                 const std::shared_ptr<transport::DataLink>& link) {
  NodeShare* const share = receive_side_.at_node();
  return share != nullptr ? share->end().link(node, link) : nullptr;
}

// Whether the engine holds a batch, or has an open claim, in one of them. A claim in overflow does not lie in the ring, and stays
// open over this: like all that waits there, its row goes by the next link, or, if its query has failed with this one, nowhere.
bool LinkLanes::uses_rings(uint32_t node) noexcept {
  const auto holds = [](const InRing& ring) { return ring.transport->unreleased_bytes() > 0; };
  const auto is_claimed = [](const Lane& lane) { return lane.is_row_claimed_in_ring(); };
  return std::ranges::any_of(receive_side_.rings_of(node), holds) ||
         std::ranges::any_of(lanes_.to_node(node), is_claimed);
}

}  // namespace faro::shuffle
