// Topology: the nodes of a cluster by number, their workers, and the rings between them. Numbers and what follows from
// them (workers, rings) are fixed; which of them have an address, and so a node, may change (NodeList).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "ring/layout.h"

namespace faro::session {

struct Node {
  uint32_t number = 0;
  std::string
      name;  // "node 2 (10.0.0.2:7000)", for messages; without the address if that may change
  uint32_t worker_count = 0;
  uint32_t first_worker = 0;  // global number of its worker 0
  uint64_t incarnation = 0;   // drawn when its process joined, as of open; 0: it was missing then
};

/// Where the other nodes reach this one: its entry in cluster.nodes.
const std::string& own_address(const base::Settings& settings);
/// Its entry in cluster.nodes leaves the port to the system.
bool has_any_port(const std::string& address);

/// Threads: any, once the session is open; addresses: the network thread. Before that the opening thread.
class Topology {
 public:
  /// `settings` outlive it. `own_address`: where this node can be reached.
  Topology(const base::Settings& settings, const std::string& own_address);

  uint32_t self() const { return self_; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(uint32_t number) const { return nodes_[number]; }
  const Node& own() const { return nodes_[self_]; }
  uint32_t worker_count() const { return worker_count_; }  // of the whole cluster

  /// Rings from this node to `node`, and back.
  ring::Layout outgoing(uint32_t node) const { return layout(self_, node); }
  ring::Layout incoming(uint32_t node) const { return layout(node, self_); }

  /// Where it listens, and the host of that; empty: no node has the number.
  const std::string& address(uint32_t node) const { return addresses_[node]; }
  std::string host(uint32_t node) const;
  /// Its name, always with the address that it has now.
  std::string full_name(uint32_t node) const;
  void set_address(uint32_t node, std::string address) { addresses_[node] = std::move(address); }
  /// This node dials that one, not the other way round.
  bool dials(uint32_t node) const { return node < self_; }

  /// The other nodes that there are.
  template <typename Visit>
  void for_each_peer(Visit&& visit) const {
    for (uint32_t number = 0; number < size(); ++number) {
      if (number != self_ && !address(number).empty()) visit(number);
    }
  }
  uint32_t peer_count() const {
    uint32_t count = 0;
    for_each_peer([&](uint32_t) { ++count; });
    return count;
  }

  // --- while the session opens

  void set_incarnation(uint32_t node, uint64_t incarnation) {
    nodes_[node].incarnation = incarnation;
  }
  /// What a peer says about itself.
  void describe(uint32_t node, uint64_t incarnation, const std::string& address);

 private:
  ring::Layout layout(uint32_t from, uint32_t to) const;

  const base::Settings& settings_;
  const uint32_t self_;
  uint32_t worker_count_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::string> addresses_;  // by number
};

}  // namespace faro::session
