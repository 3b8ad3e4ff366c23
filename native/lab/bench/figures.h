// What a run of a job costs, whoever carried the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lab/bench/process_group.h"
#include "lab/workload/integer_rows.h"

namespace faro::bench {

/// The one in the middle, or what is between the two; there is at least one.
double median(std::vector<double> values);

/// What a round has to bring back from all workers together.
struct Expectation {
  uint64_t rows = 0;
  uint64_t hops = 0;  ///< rows shuffled: each row twice in the two-stage job
  workload::Totals totals;
};

/// One timed round.
struct RunFigures {
  double seconds = 0;      ///< wall time from the common start to the end of the last worker
  double cpu_seconds = 0;  ///< user and system time of all processes
  Expectation expected;
  workload::Totals totals;         ///< that came
  double busiest_cpu_seconds = 0;  ///< of the worker that took most of it; 0: not known
  double most_rows = 0;            ///< of the worker to which most came; 0: not known

  bool verified() const noexcept { return totals == expected.totals; }
  double rows_per_second() const noexcept {
    return seconds > 0 ? static_cast<double>(expected.rows) / seconds : 0;
  }
  double wall_ns_per_hop() const noexcept { return ns_per_hop(seconds); }
  double cpu_ns_per_hop() const noexcept { return ns_per_hop(cpu_seconds); }

 private:
  double ns_per_hop(double time) const noexcept {
    return expected.hops > 0 ? time * 1e9 / static_cast<double>(expected.hops) : 0;
  }
};

/// How often a contestant runs within one set of processes, and how it is watched.
struct RunOptions {
  uint32_t warmup_rounds = 1;  ///< not reported
  uint32_t timed_rounds = 1;
  uint64_t time_limit_ns = 120'000'000'000;
  uint64_t progress_interval_ns = 200'000'000;
  ProgressSink progress = {};
};

/// The options of a process group of that shape.
ProcessGroupOptions group_options(uint32_t process_count, uint32_t workers_per_process,
                                  const RunOptions& options);

RunFigures figures_of(const Expectation& expected, const RoundTotals& round);
/// The figures of the timed rounds, in order: all but the warm-up.
std::vector<RunFigures> timed_figures(const Expectation& expected, const RunOptions& options,
                                      const std::vector<RoundTotals>& rounds);

/// Runs `body` in each process of a new group. Threads, Blocks, Errors: as ProcessGroup. A wrong result is
/// no error: see RunFigures::verified.
Result<std::vector<RunFigures>> run_group(const ProcessGroupOptions& group,
                                          const Expectation& expected, const RunOptions& options,
                                          const std::function<Status(GroupMember&)>& body);

/// Medians of times and of most_rows, each for itself; verified only if every run was. The rest is
/// from the first run that is not verified, else from the first. `runs` must not be empty.
RunFigures median_of(const std::vector<RunFigures>& runs);

}  // namespace faro::bench
