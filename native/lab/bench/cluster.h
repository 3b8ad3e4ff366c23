// Runs a Faro contestant on this host: forks the nodes, connects them, lets every worker do its job
// in each round, and brings back figures, metrics and the time it took to connect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/figures.h"
#include "lab/bench/node_report.h"
#include "lab/bench/round_worker.h"

namespace faro::bench {

/// Who does what, and what has to come of it.
struct ClusterJob {
  uint32_t process_count = 1;
  uint32_t workers_per_process = 1;
  Expectation expected;
  MakeRoundWorker make_worker;
};

struct FaroOptions {
  /// Settings of every node: transport, rings, threshold, …; cluster.node, cluster.nodes and cluster.workers
  /// are set here.
  Config config;
  /// Numeric addresses of this host, not empty: the nodes take turns to listen on them, on ports
  /// that the system chooses.
  std::vector<std::string> hosts = {"127.0.0.1"};
  /// Before the first round all workers wait this long for nothing, to see what that costs.
  uint64_t idle_ns = 0;
};

struct FaroRun {
  std::vector<RunFigures> rounds;  ///< the timed ones
  std::vector<NodeReport> nodes;   ///< one per process (rounds are empty: see above)
  double connect_seconds = 0;  ///< from the first node that begins to the last that is connected
};

/// Runs the job options.warmup_rounds + options.timed_rounds times over the same session, each time as one
/// query. A round's time includes opening its shuffles and the agreement on the end of the query.
///
/// Threads: as ProcessGroup::run, the caller must have no other threads.
/// Blocks: until the processes have ended or the time limit has passed.
/// Errors: of ProcessGroup::run, ListeningSocket::bind, Session::open and of the RoundWorkers, with the
/// process in front. A wrong result is no error: see RunFigures::verified.
Result<FaroRun> run_cluster(const ClusterJob& job, const FaroOptions& faro,
                            const RunOptions& options);

}  // namespace faro::bench
