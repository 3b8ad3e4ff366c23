// The bar for Faro over shared memory: the two-stage job written by hand for this job alone. One loop
// per worker over rings in shared memory; no library, no sessions, no queries, no other shuffles, no
// failures.
//
//   generator ─ hash ─> stage 1 rings ─> n*3/2 ─ hash ─> stage 2 rings ─> sink
//
// It has what makes such a loop fast: rows are made in the ring (nothing is staged or copied), hash and
// scatter are one pass, rings are staggered, positions are published per frame of 8 KiB, and a worker
// yields before it sleeps on a futex, which is woken only if someone sleeps there. Same hash, frames
// and check as all contestants.
#pragma once

#include <vector>

#include "faro/status.h"
#include "lab/bench/figures.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// Forks the processes of the job, runs it options.warmup_rounds + options.timed_rounds times, and
/// returns the timed rounds.
///
/// Threads: as ProcessGroup::run, the caller must have no other threads.
/// Blocks: until the processes have ended or the time limit has passed.
/// Errors: of ProcessGroup::run. A wrong result is no error: see RunFigures::verified.
Result<std::vector<RunFigures>> run_plain_loop(const TwoStageJob& job, const RunOptions& options);

}  // namespace faro::bench
