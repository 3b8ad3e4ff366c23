#include "session/topology.h"

#include <fmt/format.h>

#include <utility>

namespace faro::session {

Topology::Topology(const base::Settings& settings, const std::string& own_address)
    : settings_(settings), self_(static_cast<uint32_t>(settings.node)) {
  for (uint32_t number = 0; number < settings.node_count(); ++number) {
    Node node;
    node.number = number;
    const std::string& named = number == self_ ? own_address : settings.node_addresses[number];
    const bool is_fixed = number == self_ || !settings.nodes_change();
    node.name =
        is_fixed ? fmt::format("node {} ({})", number, named) : fmt::format("node {}", number);
    node.worker_count = settings.workers_per_node[number];
    node.first_worker = worker_count_;
    worker_count_ += node.worker_count;
    nodes_.push_back(std::move(node));
  }
}

ring::Layout Topology::layout(uint32_t from, uint32_t to) const {
  ring::Layout rings;
  rings.sender_workers = settings_.workers_per_node[from];
  rings.receiver_workers = settings_.workers_per_node[to];
  rings.rings_per_lane = static_cast<uint32_t>(settings_.rings_per_lane);
  rings.ring_bytes = static_cast<uint32_t>(settings_.ring_bytes);
  return rings;
}

const std::string& own_address(const base::Settings& settings) {
  return settings.node_addresses[settings.node];
}

bool has_any_port(const std::string& address) { return address.ends_with(":0"); }

void Topology::describe(uint32_t node, const std::string& address) {
  const bool has_port = !has_any_port(settings_.node_addresses[node]);
  if (!has_port && !address.empty() && !settings_.nodes_change())
    nodes_[node].name = fmt::format("node {} ({})", node, address);
}

}  // namespace faro::session
