// MisbehavingNode: a member that has gone bad. Its bytes are well-formed, but what it says is not true: queries that
// never began, failures, stops, ends and outcomes of queries that are not its own, again and in any order.
#pragma once

#include <cstdint>

#include "lab/simulation/cluster.h"
#include "lab/simulation/ledger.h"
#include "lab/simulation/run_plan.h"
#include "wire/query_message.h"

namespace faro::simulation {

/// Threads: its world's. What it says depends on `seed` and on what has begun, not on who ran when.
class MisbehavingNode {
 public:
  MisbehavingNode(Cluster& cluster, const RunPlan& plan, Ledger& ledger, uint32_t node,
                  uint64_t seed);

  /// That many control messages, to random nodes.
  void tell(uint32_t count);
  /// By one of its workers, from its fiber: rows of queries in which the node takes no part.
  void send_rows(Worker& worker);

 private:
  /// The id of a real query, of one that may begin later, or of none.
  QueryId some_id();
  bool is_own(const QueryId& id) const;
  uint32_t some_node() { return static_cast<uint32_t>(chance_.below(plan_.node_count())); }
  wire::QueryMessage some_message();
  void remember(const wire::QueryMessage& message, uint32_t to);

  Cluster& cluster_;
  const RunPlan& plan_;
  Ledger& ledger_;
  const uint32_t node_;
  Chance chance_;
};

}  // namespace faro::simulation
