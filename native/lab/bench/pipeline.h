// A pipeline of three nodes whose last one is slow: whether it slows the first one down, or its rows pile up in overflow.
#pragma once

#include <cstdint>

#include "faro/status.h"
#include "lab/bench/cluster.h"

namespace faro::bench {

/// A worker each: node 0 makes rows of 8 bytes, node 1 sends on what it receives, node 2 is the slow one.
struct PipelineJob {
  static constexpr uint32_t kProcesses = 3;
  static constexpr uint32_t kRowBytes = 8;
  /// Rows of a second query, from node 0 to node 1, which receives none before the first one has ended.
  static constexpr uint64_t kUnpolledRows = 100'000;

  uint64_t rows = 1'000'000;
  uint64_t ns_per_row = 1'000;  ///< that node 2 takes for each, asleep
  bool unpolled = false;        ///< with the second query

  uint64_t received_count() const noexcept { return rows + (unpolled ? kUnpolledRows : 0); }
  uint64_t hop_count() const noexcept { return received_count() + rows; }
};

/// Rows that nodes have copied to overflow, in all rounds.
uint64_t rows_spilled(const std::vector<NodeReport>& nodes) noexcept;

/// Runs the job as run_faro runs its own, without a warm-up.
Result<FaroRun> run_pipeline(const PipelineJob& job, const FaroOptions& faro, uint32_t rounds);

}  // namespace faro::bench
