// Topology: the nodes of a cluster by number, their workers, and the rings between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "ring/layout.h"

namespace faro::session {

struct Node {
  uint32_t number = 0;
  std::string name;  // "node 2 (10.0.0.2:7000)", for messages
  uint32_t worker_count = 0;
  uint32_t first_worker = 0;  // global number of its worker 0
  uint64_t incarnation = 0;   // drawn when its process joined, as of open; 0: it was missing then
};

/// Threads: any, once the session is open; before that the opening thread.
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

  /// Its entry of cluster.nodes, and the host of it.
  const std::string& address(uint32_t node) const { return settings_.node_addresses[node]; }
  std::string host(uint32_t node) const;
  /// Its entry in cluster.nodes leaves the port to the system.
  bool has_any_port(uint32_t node) const;
  /// This node dials that one, not the other way round.
  bool dials(uint32_t node) const { return node < self_; }

  template <typename Visit>
  void for_each_peer(Visit&& visit) const {
    for (uint32_t number = 0; number < size(); ++number) {
      if (number != self_) visit(number);
    }
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
};

}  // namespace faro::session
