// Nodes that come and go while a session is open.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstdint>
#include <string>

#include "faro/session.h"
#include "faro/status.h"

#pragma GCC visibility push(default)

namespace faro {

/// A node that is added to a session.
struct NodeSpec {
  uint32_t number = 0;  ///< below cluster.node_limit, the same for all nodes
  std::string address;  ///< host:port, where it listens
};

/// The nodes of a session, if cluster.node_limit says that they may change
/// (native/session/README.md): `Nodes(session).add({3, "host:7000"})`. Each session is told
/// separately, in any order, by whoever knows all nodes, such as the engine's coordinator.
/// SessionListener tells when what was begun here is done.
///
/// Threads: any. Blocks: never. Valid as long as its session.
class Nodes {
 public:
  explicit Nodes(Session& session) : session_(session) {}

  /// Adds a node: from now on queries that are declared here may contain it. It is linked when the
  /// first such query is declared, or for Session::await_node(), and needs no memory until then.
  /// The one of both nodes with the higher number dials, and the other one asks it to. The added
  /// node has to be told of this one, too. Its workers are the cluster.workers numbers from
  /// Session::first_worker(node) on.
  /// Errors: invalid_argument (no such number, the own one, no host:port, or port 0 where this node
  /// has to dial), wrong_state (the number is in use: remove that node first, and wait for
  /// node_removed; no cluster.node_limit), session_closed.
  Status add(const NodeSpec& node);
  /// Takes a node out of use. A query that is begun here cannot contain it any more
  /// (declare_query() refuses); those that run go on. When no such query still runs that this node
  /// has begun or, as they say, any node that it is linked with, the drained one included, the link
  /// is closed, its memory is given back, and SessionListener::node_drained is told. So tell every
  /// node of the drain. One that is not linked here at the time, because no query needed
  /// that yet or its link was let go (link.idle_ms), is not asked: a query that it has begun, and
  /// that is declared here only after the drain is done, fails with peer_lost. Repeatable; remove()
  /// ends it early.
  /// Errors: invalid_argument (no such node), wrong_state (no cluster.node_limit), session_closed.
  Status drain(uint32_t node);
  /// Forgets a node for good: closes its link, by which queries that contain it fail, and refuses
  /// its process from now on. SessionListener::node_lost is told first if the node was linked.
  /// SessionListener::node_removed is told when the removal is done; then the number can be used
  /// again.
  /// Errors: invalid_argument (no such node, the own one), wrong_state (no cluster.node_limit),
  /// session_closed.
  Status remove(uint32_t node);

 private:
  Session& session_;
};

}  // namespace faro

#pragma GCC visibility pop
