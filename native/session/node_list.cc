#include "session/node_list.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/return_if_error.h"
#include "session/topology.h"

namespace faro::session {

NodeList::NodeList(const base::Settings& settings) : settings_(settings) {
  for (const std::string& address : settings.node_addresses)
    standings_.push_back(address.empty() ? Standing::none : Standing::member);
}

NodeList::Standing NodeList::standing(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return node < standings_.size() ? standings_[node] : Standing::none;
}

// Whether the number is one that can be given and taken.
Status NodeList::check(uint32_t node) const {
  if (!settings_.nodes_change()) {
    return Status(Code::wrong_state,
                  "cluster.node_limit = 0: the nodes of this session are those of cluster.nodes");
  }
  if (node >= standings_.size()) {
    return base::error(Code::invalid_argument, "node {}: cluster.node_limit = {} allows 0 … {}",
                       node, settings_.node_limit, settings_.node_limit - 1);
  }
  if (node != settings_.node) return Status::Ok();
  return base::error(Code::invalid_argument, "node {} is this node itself", node);
}

Status NodeList::add(uint32_t node, const std::string& address) {
  FARO_RETURN_IF_ERROR(check(node));
  if (const Status status = base::check_address("address", address, ""); !status.ok())
    return Status(Code::invalid_argument, std::string(status.message()));
  if (node < settings_.node && has_any_port(address)) {
    return base::error(Code::invalid_argument,
                       "node {} has the address {}, but node {} has to dial it and needs its port",
                       node, address, settings_.node);
  }
  const std::lock_guard lock(mutex_);
  if (standings_[node] == Standing::removed)
    return base::error(Code::wrong_state, "node {} is being removed; wait for node_removed", node);
  if (standings_[node] != Standing::none)
    return base::error(Code::wrong_state, "node {} is there already; remove it first", node);
  standings_[node] = Standing::member;
  return Status::Ok();
}

Status NodeList::remove(uint32_t node) {
  FARO_RETURN_IF_ERROR(check(node));
  const std::lock_guard lock(mutex_);
  if (standings_[node] != Standing::member && standings_[node] != Standing::drained)
    return base::error(Code::invalid_argument, "no node has the number {}", node);
  standings_[node] = Standing::removed;
  return Status::Ok();
}

void NodeList::note_unlinked(uint32_t node, std::string why) {
  const std::lock_guard lock(mutex_);
  unlinked_[node] = std::move(why);
}

void NodeList::note_linked(uint32_t node) {
  const std::lock_guard lock(mutex_);
  unlinked_.erase(node);
}

std::string NodeList::why_unlinked(uint32_t node) const {
  std::string why = noted_unlinked(node);
  return why.empty() ? fmt::format("node {}: it has not come", node) : why;
}

std::string NodeList::noted_unlinked(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  const auto why = unlinked_.find(node);
  return why == unlinked_.end() ? "" : why->second;
}

void NodeList::forget(uint32_t node) {
  const std::lock_guard lock(mutex_);
  unlinked_.erase(node);
  standings_[node] = Standing::none;
}

void NodeList::drained(uint32_t node) {
  const std::lock_guard lock(mutex_);
  if (standings_[node] == Standing::member) standings_[node] = Standing::drained;
}

}  // namespace faro::session
