#include "shuffle/query/cluster_view.h"

#include <utility>

#include "base/error.h"

namespace faro::shuffle {

ClusterView::ClusterView(ClusterShape shape)
    : shape_(std::move(shape)), losses_(node_count()), joined_at_(node_count()) {
  for (uint32_t n = 0; n < node_count(); ++n) {
    if (incarnation(n) != 0) continue;
    losses_[n] = base::error(Code::peer_lost,
                             "{} is missing: it has not come {}since this node opened its session",
                             name(n), nodes_change() ? "" : "back ")
                     .of_node(n);
  }
}

bool ClusterView::has_worker(uint32_t node, uint32_t worker) const {
  return worker >= shape_.first_worker[node] &&
         worker - shape_.first_worker[node] < shape_.worker_count[node];
}

uint32_t ClusterView::node_of_worker(uint32_t worker) const {
  for (uint32_t n = node_count(); n-- > 0;) {
    if (worker >= shape_.first_worker[n]) return n;
  }
  return 0;
}

// It is gone, or another process than when the query was begun.
Status ClusterView::why_not_in(const QueryId& id, uint32_t node) const {
  if (!is_there(node)) return loss(node);
  if (id.issuer != own() || id.counter > joined_at_[node]) return Status::Ok();
  return base::error(Code::peer_lost, "query {} began before {} was lost, or had come back",
                     id.to_string(), name(node))
      .of_node(node);
}

void ClusterView::join(uint32_t node, uint64_t new_incarnation, uint64_t begun) {
  shape_.incarnations[node] = new_incarnation;
  losses_[node] = Status::Ok();
  joined_at_[node] = begun;
}

}  // namespace faro::shuffle
