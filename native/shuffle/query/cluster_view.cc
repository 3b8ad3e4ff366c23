#include "shuffle/query/cluster_view.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace faro::shuffle {

void NodeNumbers::set(uint32_t node, bool is_member) noexcept {
  const auto at = std::ranges::lower_bound(numbers_, node);
  const bool was_member = at != numbers_.end() && *at == node;
  if (was_member == is_member) return;
  if (is_member) {
    numbers_.insert(at, node);
  } else {
    numbers_.erase(at);
  }
}

ClusterView::ClusterView(ClusterShape shape)
    : shape_(std::move(shape)),
      nodes_(shape_.nodes.size()),
      there_(node_count()),
      drained_(node_count()) {
  for (uint32_t n = 0; n < node_count(); ++n) {
    adopt(n, shape_.nodes[n].peer);
  }
}

bool ClusterView::has_worker(uint32_t node, uint32_t worker) const {
  const ClusterNode& of = shape_.nodes[node];
  return worker >= of.first_worker && worker - of.first_worker < of.worker_count;
}

uint32_t ClusterView::node_of_worker(uint32_t worker) const {
  const auto& nodes = shape_.nodes;
  const auto next = std::ranges::upper_bound(nodes, worker, {}, &ClusterNode::first_worker);
  return static_cast<uint32_t>(next - nodes.begin() - 1);
}

// One that is to come may be the process that has begun it; that is known when it is linked.
bool ClusterView::may_live(const QueryId& id) const {
  if (id.issuer >= node_count()) return false;
  if (is_to_come(id.issuer)) return is_parted(id.issuer) || !is_of_this_life(id);
  return is_there(id.issuer) && is_of_this_life(id);
}

Status ClusterView::loss(uint32_t node) const {
  if (is_lost(node)) return nodes_[node].loss;
  return base::error(Code::peer_lost, "{} is missing: it {}", name(node),
                     is_wanted_for_good(node)
                         ? "has not come back since this node opened its session"
                         : "was not added to the session of this node, or was removed")
      .of_node(node);
}

// It is gone, or another process than when the query was begun.
Status ClusterView::why_not_in(const QueryId& id, uint32_t node) const {
  if (!is_there(node)) return is_to_come(node) ? Status::Ok() : loss(node);
  if (id.issuer != own() || id.counter > nodes_[node].begun_before) return Status::Ok();
  return base::error(Code::peer_lost, "query {} began before {} was lost, or had come back",
                     id.to_string(), name(node))
      .of_node(node);
}

void ClusterView::adopt(uint32_t node, const session::PeerView& now) noexcept {
  Node& of = nodes_[node];
  if (now.version < of.peer.version) return;
  of.peer = now;
  of.idle_since.reset();
  if (!is_lost(node)) of.loss = Status();
  there_.set(node, is_there(node));
}

// A query that was begun before a node was linked may have waited for just that, unless the node is wanted for good.
void ClusterView::join(uint32_t node, const session::PeerView& now, uint64_t begun) noexcept {
  adopt(node, now);
  if (is_wanted_for_good(node)) nodes_[node].begun_before = begun;
}

void ClusterView::lose(uint32_t node, const session::PeerView& now, Status cause,
                       uint64_t begun) noexcept {
  // That it is drained then is not why it is lost.
  if (!is_lost(node)) nodes_[node].loss = std::move(cause);
  nodes_[node].begun_before = begun;
  adopt(node, now);
}

void ClusterView::set_drain(uint32_t node, DrainStage stage) noexcept {
  nodes_[node].drain = stage;
  drained_.set(node, stage != DrainStage::none);
}

}  // namespace faro::shuffle
