// Runs a Faro contestant on this host: forks the nodes, connects them, lets every worker do its job
// in each round, and brings back figures, metrics and the time it took to connect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/node_report.h"
#include "lab/bench/process_group.h"
#include "lab/bench/round_worker.h"

namespace faro::bench {

struct ClusterOptions {
  ProcessGroupOptions group;  ///< processes, workers, rounds, time limit (shared_bytes is set here)
  /// Settings of every node; cluster.node, cluster.nodes and cluster.workers are set here.
  Config config;
  /// Numeric addresses of this host, not empty: the nodes take turns to listen on them, on ports
  /// that the system chooses.
  std::vector<std::string> hosts = {"127.0.0.1"};
  /// Before the first round all workers wait this long for nothing, to see what that costs.
  uint64_t idle_ns = 0;
};

struct ClusterRun {
  std::vector<RoundTotals> rounds;
  std::vector<NodeReport> nodes;  ///< one per process (rounds are empty: see above)
  double connect_seconds = 0;     ///< from the first node that begins to the last that is connected
};

/// Threads: as ProcessGroup::run, the caller must have no other threads.
/// Blocks: until the processes have ended or the time limit has passed.
/// Errors: of ProcessGroup::run, Listener::bind, Session::open and of the RoundWorkers, with the
/// process in front.
Result<ClusterRun> run_cluster(const ClusterOptions& options, const MakeRoundWorker& make_worker,
                               const ProgressSink& progress);

}  // namespace faro::bench
