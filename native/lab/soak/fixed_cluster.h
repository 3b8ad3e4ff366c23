// FixedCluster: a cluster of a soak that is one list of nodes; these are paused, stopped and killed during queries, and some
// return.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "faro/status.h"
#include "lab/soak/node_group.h"
#include "lab/soak/plan.h"
#include "lab/soak/query_runs.h"
#include "lab/soak/soak.h"

namespace faro::soak {

/// Threads: the controller's.
class FixedCluster {
 public:
  /// All outlive it. `number`: of the cluster.
  FixedCluster(const Options& options, uint64_t number, NodeGroup& nodes, Progress& progress)
      : options_(options),
        number_(number),
        plan_(draw_cluster(options, number)),
        nodes_(nodes),
        progress_(progress),
        queries_(options, plan_, number, nodes, progress) {}

  /// From opening to closing. `is_over`: no more queries. Returns the bytes that the witness's heap has in use then.
  /// Errors: a violation.
  Result<uint64_t> run(const std::function<bool()>& is_over);

 private:
  using Begun = QueryRuns::Begun;

  Status pause(uint32_t query, const FaultPlan& fault);
  Status lose(uint32_t query, const FaultPlan& fault);
  Status bring_back(uint32_t node);

  const Options& options_;
  const uint64_t number_;
  const ClusterPlan plan_;
  NodeGroup& nodes_;
  Progress& progress_;
  QueryRuns queries_;
  std::string addresses_;  // of the nodes of this cluster
};

}  // namespace faro::soak
