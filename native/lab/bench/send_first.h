// What it costs a program that it sends all its rows before it receives any, beside Worker::exchange.
#pragma once

#include <cstdint>

#include "faro/status.h"
#include "lab/bench/cluster.h"

namespace faro::bench {

/// One shuffle of all workers to all, by hash.
struct SendFirstJob {
  uint32_t process_count = 2;
  uint32_t workers_per_process = 1;
  uint64_t bytes_per_process = 32'000'000;  ///< of rows that its workers send
  uint32_t row_bytes = 8;                   ///< 8, or from 16 on
  uint32_t rounds = 7;                      ///< of each way, by turns; and one to warm up

  /// Errors: invalid_argument names field, value and limit.
  Status validate() const;

  uint32_t worker_count() const noexcept { return process_count * workers_per_process; }
  uint64_t rows_per_worker() const noexcept {
    return bytes_per_process / row_bytes / workers_per_process;
  }
  uint64_t row_count() const noexcept { return worker_count() * rows_per_worker(); }
};

struct SendFirstRun {
  RunFigures together;  ///< medians
  RunFigures afterwards;
  std::vector<RunFigures> rounds_together;
  std::vector<RunFigures> rounds_afterwards;
  std::vector<NodeReport> nodes;

  /// How many times as long it takes to send first.
  double times() const noexcept { return afterwards.seconds / together.seconds; }
};

/// Runs the job as run_faro runs its own, with one session for both ways. A hop is one row received.
Result<SendFirstRun> run_send_first(const SendFirstJob& job, const FaroOptions& faro);

}  // namespace faro::bench
