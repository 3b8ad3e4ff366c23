// The bar for wide rows: what moving them costs at least. One process and one thread, which makes each row,
// hashes it and copies it by memcpy into the partition of its receiver; does the same with the row of
// n*3/2; and checks it.
//
//   make ─ hash ─ memcpy ─> partition ─> make ─ hash ─ memcpy ─> partition ─> check
//
// A partition is a ring's worth of rows, handled when it is full. Nothing crosses a processor, nobody
// waits, nobody is told.
#pragma once

#include <vector>

#include "faro/status.h"
#include "lab/bench/figures.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// Does all of the job in one process, options.warmup_rounds + options.timed_rounds times, and returns
/// the timed rounds. There is a partition per stage for each worker of the job.
///
/// Threads, Blocks, Errors: as run_plain_loop.
Result<std::vector<RunFigures>> run_copies(const TwoStageJob& job, const RunOptions& options);

}  // namespace faro::bench
