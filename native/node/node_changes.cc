#include "node/node_changes.h"

#include "base/error.h"

namespace faro::node {

Status NodeChanges::check() const {
  if (presence_.is_closed()) return Status(Code::session_closed, "the session was closed");
  if (membership_.settings().nodes_change()) return Status::Ok();
  return Status(Code::wrong_state,
                "cluster.node_limit = 0: the nodes of this session are those of cluster.nodes");
}

Status NodeChanges::add(const NodeSpec& node) {
  FARO_RETURN_IF_ERROR(check());
  FARO_RETURN_IF_ERROR(membership_.add_node(node.number, node.address));
  queries_.on_node_added(node.number);
  return Status::Ok();
}

Status NodeChanges::drain(uint32_t node) {
  FARO_RETURN_IF_ERROR(check());
  if (!membership_.has_number(node))
    return base::error(Code::invalid_argument, "no node has the number {}", node);
  queries_.drain(node);
  return Status::Ok();
}

Status NodeChanges::remove(uint32_t node) {
  FARO_RETURN_IF_ERROR(check());
  return membership_.remove_node(node);
}

Status NodeChanges::await(uint32_t node, Wait wait, const Cancellation& cancellation) {
  presence_.ask_for(node);
  if (!presence_.is_present(node) && !presence_.is_closed()) membership_.want_link(node);
  return presence_.await(node, wait, cancellation);
}

void NodeChanges::on_tick() {
  for (const uint32_t node : presence_.awaited()) membership_.want_link(node);
}

}  // namespace faro::node
