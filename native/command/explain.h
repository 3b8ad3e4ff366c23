// Why a query is stuck: which worker waits for what on which peer, and where that chain of waiting ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/node_watch.h"

namespace faro::command {

/// One worker that waits for something of a query.
struct ExplainedWait {
  uint32_t node = 0, pid = 0, worker = 0;
  double seconds = 0;
  std::string what;  ///< "room towards worker 3, stage 0 of query 0:1"
};

/// An operator of a query: what it has done until now.
struct ExplainedOperator {
  uint32_t node = 0, worker = 0, stage = 0;
  bool is_join = false;
  counters::OperatorValues counters;
};

/// A worker, node or cycle that others wait for and that does not wait for anything else.
struct Cause {
  std::string text;
  uint32_t waiting = 0;  ///< workers whose waits end here
};

struct ExplainedQuery {
  std::string cluster;
  std::string query;  ///< "0:1"
  double seconds = 0;
  std::vector<uint32_t> nodes;  ///< of this host that know it
  bool failed = false;
  std::vector<ExplainedWait> waits;
  std::vector<ExplainedOperator> operators;  ///< of this host, by node and worker
  std::vector<Cause> causes;                 ///< the one that most wait for first
};

/// Explains every query that the nodes know, or only this one ("0:1"). `nodes` has two snapshots of each node, which
/// show what makes progress.
std::vector<ExplainedQuery> explain(const std::vector<NodeChange>& nodes,
                                    const std::string& only_query);

std::string explain_text(const std::vector<ExplainedQuery>& queries);
Json explain_json(const std::vector<ExplainedQuery>& queries);

}  // namespace faro::command
