// The two-stage job carried by Faro, on this host. (On several hosts: cluster_node.h.)
#pragma once

#include <string>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/cluster.h"
#include "lab/bench/figures.h"
#include "lab/bench/round_worker.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

struct FaroOptions {
  Config config;  ///< settings of every node: transport, rings, threshold, …
  std::vector<std::string> hosts = {"127.0.0.1"};  ///< see ClusterOptions
  uint64_t idle_ns = 0;                            ///< see ClusterOptions
};

struct FaroRun {
  std::vector<RunFigures> rounds;  ///< the timed ones
  std::vector<NodeReport> nodes;
  double connect_seconds = 0;
};

/// Forks the nodes, connects them, runs the job options.warmup_rounds + options.timed_rounds times
/// over the same session (each time as one query), and returns the timed rounds. A round's time
/// includes opening both shuffles and the agreement on the end of the query.
///
/// Threads, Blocks, Errors: as run_cluster. A wrong result is no error: see RunFigures::verified.
Result<FaroRun> run_faro(const TwoStageJob& job, const FaroOptions& faro,
                         const RunOptions& options);

/// The job's RoundWorker for any hash and width; `job` is copied.
MakeRoundWorker two_stage_worker(const TwoStageJob& job);

}  // namespace faro::bench
