// How fast rows with a length each are written and read: one shuffle by hash, all workers to all.
#pragma once

#include <cstdint>

#include "faro/status.h"
#include "lab/bench/cluster.h"

namespace faro::bench {

struct VariableRowsJob {
  uint32_t process_count = 2;
  uint32_t workers_per_process = 1;
  uint64_t rows_per_worker = 2'000'000;

  /// Every row has this many bytes and travels with its length in front of it.
  static constexpr uint32_t kRowBytes = 100;

  uint64_t row_count() const noexcept {
    return uint64_t{process_count} * workers_per_process * rows_per_worker;
  }
  uint64_t byte_count() const noexcept { return row_count() * kRowBytes; }
};

/// Runs the job as run_faro runs its own. Every byte of every row is written by its sender and
/// checked by its receiver; a hop is one row, and RunFigures counts rows.
Result<FaroRun> run_variable_rows(const VariableRowsJob& job, const FaroOptions& faro,
                                  const RunOptions& options);

}  // namespace faro::bench
