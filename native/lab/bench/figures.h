// What a run of the two-stage job costs, whoever carried the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/bench/process_group.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// One timed round.
struct RunFigures {
  double seconds = 0;      ///< wall time from the common start to the end of the last worker
  double cpu_seconds = 0;  ///< user and system time of all processes
  uint64_t rows = 0;
  uint64_t hops = 0;  ///< rows shuffled: each row twice
  uint64_t count = 0;
  uint64_t expected_count = 0;
  uint64_t checksum = 0;
  uint64_t expected_checksum = 0;
  /// Count and checksum are as expected.
  bool verified = false;

  double rows_per_second() const noexcept {
    return seconds > 0 ? static_cast<double>(rows) / seconds : 0;
  }
  double wall_ns_per_hop() const noexcept {
    return hops > 0 ? seconds * 1e9 / static_cast<double>(hops) : 0;
  }
  double cpu_ns_per_hop() const noexcept {
    return hops > 0 ? cpu_seconds * 1e9 / static_cast<double>(hops) : 0;
  }
};

/// How often a contestant runs within one set of processes, and how it is watched.
struct RunOptions {
  uint32_t warmup_rounds = 1;  ///< not reported
  uint32_t timed_rounds = 1;
  uint64_t time_limit_ns = 120'000'000'000;
  uint64_t progress_interval_ns = 200'000'000;
  ProgressSink progress;
};

/// The options of a process group that runs `job` in that many rounds.
ProcessGroupOptions group_options(const TwoStageJob& job, const RunOptions& options);

/// Compares a round of the group with what the job expects.
RunFigures figures_of(const TwoStageJob& job, const RoundTotals& round);

/// The figures of the timed rounds, in order: all but the warm-up.
std::vector<RunFigures> timed_figures(const TwoStageJob& job, const RunOptions& options,
                                      const std::vector<RoundTotals>& rounds);

/// Median wall and median CPU time, each for itself; verified only if every run was. The rest is
/// from the first run that is not verified, else from the first. `runs` must not be empty.
RunFigures median_of(const std::vector<RunFigures>& runs);

}  // namespace faro::bench
