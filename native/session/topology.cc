#include "session/topology.h"

#include <fmt/format.h>

#include <utility>

#include "transport/tcp/socket_address.h"

namespace faro::session {

Topology::Topology(const base::Settings& settings, const std::string& own_address)
    : settings_(settings),
      self_(static_cast<uint32_t>(settings.node)),
      addresses_(settings.node_addresses) {
  for (uint32_t number = 0; number < settings.node_count(); ++number) {
    Node node;
    node.number = number;
    const std::string& named = number == self_ ? own_address : address(number);
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

std::string Topology::host(uint32_t node) const { return transport::tcp::host_of(address(node)); }

std::string Topology::full_name(uint32_t node) const {
  if (node == self_ || !settings_.nodes_change()) return nodes_[node].name;
  return fmt::format("node {} ({})", node, address(node));
}

const std::string& own_address(const base::Settings& settings) {
  return settings.node_addresses[settings.node];
}

bool has_any_port(const std::string& address) { return address.ends_with(":0"); }

void Topology::describe(uint32_t node, uint64_t incarnation, const std::string& address) {
  nodes_[node].incarnation = incarnation;
  if (has_any_port(this->address(node)) && !address.empty() && !settings_.nodes_change())
    nodes_[node].name = fmt::format("node {} ({})", node, address);
}

}  // namespace faro::session
