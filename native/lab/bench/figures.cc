#include "lab/bench/figures.h"

#include <algorithm>

#include "base/return_if_error.h"

namespace faro::bench {

double median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

ProcessGroupOptions group_options(uint32_t process_count, uint32_t workers_per_process,
                                  const RunOptions& options) {
  return {.process_count = process_count,
          .workers_per_process = workers_per_process,
          .round_count = options.warmup_rounds + options.timed_rounds,
          .time_limit_ns = options.time_limit_ns,
          .progress_interval_ns = options.progress_interval_ns};
}

RunFigures figures_of(const Expectation& expected, const RoundTotals& round) {
  RunFigures figures{round.seconds, round.cpu_seconds, expected, round.rows};
  for (const WorkerRound& worker : round.workers) {
    figures.busiest_cpu_seconds =
        std::max(figures.busiest_cpu_seconds, static_cast<double>(worker.cpu_ns) * 1e-9);
    figures.most_rows = std::max(figures.most_rows, static_cast<double>(worker.rows.count));
  }
  return figures;
}

std::vector<RunFigures> timed_figures(const Expectation& expected, const RunOptions& options,
                                      const std::vector<RoundTotals>& rounds) {
  std::vector<RunFigures> figures;
  for (size_t round = options.warmup_rounds; round < rounds.size(); ++round) {
    figures.push_back(figures_of(expected, rounds[round]));
  }
  return figures;
}

Result<std::vector<RunFigures>> run_group(const ProcessGroupOptions& group_of,
                                          const Expectation& expected, const RunOptions& options,
                                          const std::function<Status(GroupMember&)>& body) {
  FARO_ASSIGN_OR_RETURN(ProcessGroup group, ProcessGroup::create(group_of));
  FARO_ASSIGN_OR_RETURN(const std::vector<RoundTotals> rounds, group.run(body, options.progress));
  return timed_figures(expected, options, rounds);
}

RunFigures median_of(const std::vector<RunFigures>& runs) {
  const auto wrong =
      std::find_if(runs.begin(), runs.end(), [](const RunFigures& run) { return !run.verified(); });
  RunFigures result = wrong != runs.end() ? *wrong : runs.front();
  for (double RunFigures::*const figure :
       {&RunFigures::seconds, &RunFigures::cpu_seconds, &RunFigures::busiest_cpu_seconds,
        &RunFigures::most_rows}) {
    std::vector<double> values;
    for (const RunFigures& run : runs) values.push_back(run.*figure);
    result.*figure = median(std::move(values));
  }
  return result;
}

}  // namespace faro::bench
