#include "session/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace faro::session {

Topology::Topology(const base::Settings& settings, const std::string& own_address)
    : settings_(settings), self_(static_cast<uint32_t>(settings.node)) {
  for (uint32_t number = 0; number < settings.node_count(); ++number) {
    Node node;
    node.number = number;
    const std::string& named = number == self_ ? own_address : settings.node_addresses[number];
    node.wanted_for_good = settings.node_limit == 0;
    node.name = number == self_ || node.wanted_for_good ? fmt::format("node {} ({})", number, named)
                                                        : fmt::format("node {}", number);
    node.worker_count = settings.workers_per_node[number];
    node.first_worker = worker_count_;
    worker_count_ += node.worker_count;
    nodes_.push_back(std::move(node));
  }
}

bool Topology::has_numbers_to_give() const {
  return !std::ranges::all_of(nodes_, &Node::wanted_for_good);
}

std::vector<uint32_t> Topology::default_workers() const {
  std::vector<uint32_t> workers(has_numbers_to_give() ? 0 : worker_count_);
  std::iota(workers.begin(), workers.end(), 0u);
  return workers;
}

ring::Layout rings_between(const base::Settings& settings, uint32_t from, uint32_t to) {
  ring::Layout rings;
  rings.sender_workers = settings.workers_per_node[from];
  rings.receiver_ends = (settings.lanes_end_at_workers() ? settings.workers_per_node[to] : 0) +
                        (settings.lanes_end_at_nodes() ? 1 : 0);
  rings.rings_per_lane = static_cast<uint32_t>(settings.rings_per_lane);
  // Those of which a node has few are larger.
  const bool are_few = !settings.lanes_end_at_workers() ||
                       (rings.sender_workers == 1 && settings.workers_per_node[to] == 1);
  rings.ring_bytes =
      static_cast<uint32_t>(are_few ? settings.large_ring_bytes : settings.ring_bytes);
  return rings;
}

uint32_t first_counted_of_node(const base::Settings& settings) {
  return settings.lanes_end_at_workers() ? static_cast<uint32_t>(settings.rings_per_lane) : 0;
}

uint32_t counted_rings_per_lane(const base::Settings& settings) {
  const auto rings = static_cast<uint32_t>(settings.rings_per_lane);
  return settings.lanes_end_at_nodes() ? first_counted_of_node(settings) + rings : rings;
}

const std::string& own_address(const base::Settings& settings) {
  return settings.node_addresses[settings.node];
}

bool has_any_port(const std::string& address) { return address.ends_with(":0"); }

void Topology::describe(uint32_t node, const std::string& address) {
  const bool has_port = !has_any_port(settings_.node_addresses[node]);
  if (!has_port && !address.empty() && nodes_[node].wanted_for_good)
    nodes_[node].name = fmt::format("node {} ({})", node, address);
}

}  // namespace faro::session
