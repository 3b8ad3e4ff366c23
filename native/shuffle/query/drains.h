// Drains: nodes that are being taken out of use (Nodes::drain), as far as queries are concerned.
//
// Only the node that begins a query decides who takes part, and participants may hear of the query long after. So each
// node says when no query that it has begun needs the drained node any more (RELEASED), and begins no more of them. A node
// that has heard this of all, the drained one included, and can say it itself, lets its own link to the drained node go.
#pragma once

#include <cstdint>
#include <vector>

#include "faro/query.h"
#include "faro/status.h"
#include "shuffle/query/known_queries.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_context.h"

namespace faro::shuffle {

/// What is known of each node stands in its record (cluster_view.h). Threads: under the table's lock.
class Drains {
 public:
  /// Both outlive it.
  Drains(QueryContext& context, const KnownQueries& known) : context_(context), known_(known) {}

  void begin(uint32_t node);
  /// Whether a query may have these workers. The node that begins it decides. Errors: invalid_argument,
  /// if that is this node, and it is being drained itself or one of theirs is.
  Status check(const QueryId& query, const std::vector<uint32_t>& workers) const;
  /// Its link may end.
  bool is_let_go(uint32_t node) const;
  /// This node is drained, and that peer does not need it any more: it may let the link go.
  bool is_own_node_released_by(uint32_t peer) const;
  /// The node is removed: whoever comes with its number is another one.
  void forget(uint32_t node);
  /// Takes back what this node has said of the former process with that number.
  void on_node_added(uint32_t node, Outbound& out);

  /// A peer has released a node, the process of that incarnation (0: whichever has the number), or takes that back. Untrusted.
  void hear(uint32_t peer, uint32_t node, uint64_t incarnation);
  void on_peer_lost(uint32_t peer);
  /// What this node has said before the peer came.
  void on_peer_joined(uint32_t peer, Outbound& out) const;
  /// Whatever has changed among queries and nodes: says and lets go what is due.
  void advance(Outbound& out);

 private:
  /// This node has said so.
  bool is_released(uint32_t node) const;
  bool is_needed_here(uint32_t node) const;
  bool is_needed_elsewhere(uint32_t node) const;
  bool has_released(uint32_t peer, uint32_t node) const;
  wire::QueryMessage released(uint32_t node) const;

  QueryContext& context_;
  const KnownQueries& known_;
};

}  // namespace faro::shuffle
