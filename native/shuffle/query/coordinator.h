// Coordinator: this node's part in a query that it has begun itself, and whose outcome it decides.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "faro/query.h"
#include "faro/status.h"
#include "shuffle/query/cluster_view.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_nodes.h"

namespace faro::shuffle {

/// Collects votes, decides, and collects confirmations (native/DESIGN.md, the commit protocol).
/// Threads: under the table's lock.
class Coordinator {
 public:
  enum class Verdict { wait, unbalanced, decide };

  /// Until the query is declared, all nodes are to vote.
  Coordinator(const QueryId& query, const ClusterView& cluster)
      : query_(query), cluster_(cluster), pending_(cluster.node_count(), true) {}

  /// Votes of nodes that were faster than the declaration count.
  void declare(const std::vector<bool>& nodes);
  /// A participant has ended. Its first balance counts.
  void vote(uint32_t node, uint64_t balance, base::Nanoseconds now);
  /// When the first vote came.
  std::optional<base::Nanoseconds> voted_since() const { return voted_since_; }
  bool has_voted(uint32_t node) const { return !pending_[node]; }
  /// Whether all have voted that are not lost, and the balances of a query that has not failed add up to 0.
  /// While they do not it waits for some ticks: whoever sees what was sent to it knows more, and fails the
  /// query by name.
  Verdict judge(const QueryNodes& nodes, bool has_failed);
  /// One of these ticks. Whether it waits so.
  bool tick();
  /// The decision: what is told to whom. From now on confirmations are awaited.
  Outbound announce(const QueryNodes& nodes, const Status& outcome, uint64_t low_water);
  /// A participant knows the outcome, or is lost.
  void confirm(uint32_t node) { pending_[node] = false; }
  bool is_confirmed() const;

  /// Which nodes have still to vote, and after the decision, to confirm.
  const std::vector<bool>& pending() const { return pending_; }

 private:
  bool is_balanced(const QueryNodes& nodes) const;

  const QueryId query_;
  const ClusterView& cluster_;
  std::vector<bool> pending_;
  std::map<uint32_t, uint64_t> balances_;  // by node
  std::optional<base::Nanoseconds> voted_since_;
  std::optional<int> ticks_to_wait_;  // all have voted, but the balances do not add up
};

}  // namespace faro::shuffle
