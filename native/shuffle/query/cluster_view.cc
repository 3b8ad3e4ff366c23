#include "shuffle/query/cluster_view.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace faro::shuffle {

ClusterView::ClusterView(ClusterShape shape) : shape_(std::move(shape)) {
  for (uint32_t n = 0; n < node_count(); ++n) {
    if (incarnation(n) != 0) there_.insert(n);
  }
}

bool ClusterView::has_worker(uint32_t node, uint32_t worker) const {
  return worker >= shape_.first_worker[node] &&
         worker - shape_.first_worker[node] < shape_.worker_count[node];
}

uint32_t ClusterView::node_of_worker(uint32_t worker) const {
  const auto& first = shape_.first_worker;
  return static_cast<uint32_t>(std::ranges::upper_bound(first, worker) - first.begin() - 1);
}

// One that is to come may be the process that has begun it; that is known when it is linked.
bool ClusterView::may_live(const QueryId& id) const {
  if (id.issuer >= node_count()) return false;
  if (is_to_come(id.issuer)) return is_parted(id.issuer) || !is_of_this_life(id);
  return is_there(id.issuer) && is_of_this_life(id);
}

Status ClusterView::loss(uint32_t node) const {
  if (const auto lost = losses_.find(node); lost != losses_.end()) return lost->second;
  return base::error(Code::peer_lost, "{} is missing: it {}", name(node),
                     nodes_change() ? "was not added to the session of this node, or was removed"
                                    : "has not come back since this node opened its session")
      .of_node(node);
}

// It is gone, or another process than when the query was begun.
Status ClusterView::why_not_in(const QueryId& id, uint32_t node) const {
  if (!is_there(node)) return is_to_come(node) ? Status::Ok() : loss(node);
  const auto before = begun_before_.find(node);
  if (id.issuer != own() || before == begun_before_.end() || id.counter > before->second)
    return Status::Ok();
  return base::error(Code::peer_lost, "query {} began before {} was lost, or had come back",
                     id.to_string(), name(node))
      .of_node(node);
}

void ClusterView::expect(uint32_t node) {
  if (is_there(node)) return;
  losses_.erase(node);
  to_come_.insert(node);
}

void ClusterView::forget(uint32_t node) {
  losses_.erase(node);
  to_come_.erase(node);
  parted_.erase(node);
}

void ClusterView::lose(uint32_t node, const Status& cause, uint64_t begun) {
  there_.erase(node);
  held_.erase(node);
  to_come_.erase(node);
  parted_.erase(node);
  losses_.try_emplace(node, cause);  // that it is drained then is not why it is lost
  begun_before_[node] = begun;
}

// Where nodes are linked on demand, a query that was begun before the first link may need just that.
void ClusterView::join(uint32_t node, uint64_t new_incarnation, uint64_t begun) {
  shape_.incarnations[node] = new_incarnation;
  there_.insert(node);
  held_.erase(node);
  to_come_.erase(node);
  parted_.erase(node);
  losses_.erase(node);
  if (!nodes_change()) begun_before_[node] = begun;
}

// Without memory: the elements of the sets move.
void ClusterView::part(uint32_t node) noexcept {
  to_come_.insert(there_.extract(node));
  parted_.insert(held_.extract(node));
}

}  // namespace faro::shuffle
