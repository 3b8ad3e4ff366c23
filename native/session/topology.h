// Topology: the numbers of a cluster's nodes, their workers, and the rings between them, and which nodes are wanted for good.
// All of that is fixed; which of the other numbers have a node, and where it is, may change (peers.h).
#pragma once

#include <cstdint>
#include <string>
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
  /// It is a node of the session as long as that is open: its link is wanted without a query, and was counted when the session
  /// opened. Else its number can be given and taken (Nodes), and it is linked when a query needs it. The own node is as the others.
  bool wanted_for_good = true;
};

/// Where the other nodes reach this one: its entry in cluster.nodes.
const std::string& own_address(const base::Settings& settings);
/// Its entry in cluster.nodes leaves the port to the system.
bool has_any_port(const std::string& address);

/// The rings from one node to another, or to itself: this alone says where they end (lane.ends). The end at the node, if there is one, is
/// the last. Rings of a link whose peer does not offer wire::kLargeRings have ring.bytes, whatever this says.
ring::Layout rings_between(const base::Settings& settings, uint32_t from, uint32_t to);

/// Whether a receiving end of such rings is the node.
inline bool is_node_end(const base::Settings& settings, const ring::Layout& rings, uint32_t end) {
  return settings.lanes_end_at_nodes() && end + 1 == rings.receiver_ends;
}

/// The counters of a lane's rings, which are between two workers: those of a lane to a node are counted as rings to its first worker, or
/// of each worker that takes what comes by it, behind the rings of the lane between the two.
uint32_t counted_rings_per_lane(const base::Settings& settings);
/// The number there of the first ring of a lane to a node.
uint32_t first_counted_of_node(const base::Settings& settings);

/// Threads: any, once the session is open. Before that the opening thread.
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
  /// Whether any number can be given and taken.
  bool has_numbers_to_give() const;
  /// Those of queries and shuffles for which none are named: all, if every node knows of all of them; else none.
  std::vector<uint32_t> default_workers() const;

  bool lanes_end_at_nodes() const { return settings_.lanes_end_at_nodes(); }
  /// Rings from this node to `node`, and back.
  ring::Layout outgoing(uint32_t node) const { return rings_between(settings_, self_, node); }
  ring::Layout incoming(uint32_t node) const { return rings_between(settings_, node, self_); }

  /// This node dials that one, not the other way round.
  bool dials(uint32_t node) const { return node < self_; }

  /// Where a peer says that it listens, while the session opens: the name of one with any port has that.
  void describe(uint32_t node, const std::string& address);

 private:
  const base::Settings& settings_;
  const uint32_t self_;
  uint32_t worker_count_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace faro::session
