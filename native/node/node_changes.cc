#include "node/node_changes.h"

#include "base/return_if_error.h"

namespace faro::node {

Status NodeChanges::add(const NodeSpec& node) {
  FARO_RETURN_IF_ERROR(membership_.add_node(node.number, node.address));
  queries_.on_node_added(node.number, membership_.peers().view(node.number));
  return Status::Ok();
}

Status NodeChanges::drain(uint32_t node) {
  FARO_RETURN_IF_ERROR(membership_.peers().check_drain(node));
  queries_.drain(node);
  return Status::Ok();
}

Status NodeChanges::remove(uint32_t node) { return membership_.remove_node(node); }

Status NodeChanges::await(uint32_t node, Wait wait, const Cancellation& cancellation) {
  session::Peers& peers = membership_.peers();
  peers.ask_for(node);
  if (!peers.is_present(node) && !peers.is_closed()) membership_.want_link(node);
  return peers.await(node, wait, cancellation);
}

void NodeChanges::on_tick() {
  for (const uint32_t node : membership_.peers().awaited()) membership_.want_link(node);
}

}  // namespace faro::node
