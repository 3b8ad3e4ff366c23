// The two-stage job carried by Faro, on this host. (On several hosts: cluster_node.h.)
#pragma once

#include "faro/status.h"
#include "lab/bench/cluster.h"
#include "lab/bench/figures.h"
#include "lab/bench/round_worker.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// Forks the nodes and runs the job on them. Threads, Blocks, Errors: as run_cluster.
Result<FaroRun> run_faro(const TwoStageJob& job, const FaroOptions& faro,
                         const RunOptions& options);

/// The job on one host or several, of any hash and width; `job` is copied.
ClusterJob two_stage_job(const TwoStageJob& job);

}  // namespace faro::bench
