#include "lab/bench/figures.h"

#include <algorithm>

namespace faro::bench {
namespace {

double median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

ProcessGroupOptions group_options(const TwoStageJob& job, const RunOptions& options) {
  ProcessGroupOptions group;
  group.process_count = job.process_count;
  group.workers_per_process = job.workers_per_process;
  group.round_count = options.warmup_rounds + options.timed_rounds;
  group.time_limit_ns = options.time_limit_ns;
  group.progress_interval_ns = options.progress_interval_ns;
  return group;
}

RunFigures figures_of(const TwoStageJob& job, const RoundTotals& round) {
  const ExpectedTotals expected = expected_totals(job);
  RunFigures figures;
  figures.seconds = round.seconds;
  figures.cpu_seconds = round.cpu_seconds;
  figures.rows = job.row_count();
  figures.hops = job.hop_count();
  figures.count = round.count;
  figures.expected_count = expected.count;
  figures.checksum = round.checksum;
  figures.expected_checksum = expected.checksum;
  figures.verified = round.count == expected.count && round.checksum == expected.checksum;
  return figures;
}

std::vector<RunFigures> timed_figures(const TwoStageJob& job, const RunOptions& options,
                                      const std::vector<RoundTotals>& rounds) {
  std::vector<RunFigures> figures;
  for (size_t round = options.warmup_rounds; round < rounds.size(); ++round) {
    figures.push_back(figures_of(job, rounds[round]));
  }
  return figures;
}

RunFigures median_of(const std::vector<RunFigures>& runs) {
  const auto wrong =
      std::find_if(runs.begin(), runs.end(), [](const RunFigures& run) { return !run.verified; });
  RunFigures result = wrong != runs.end() ? *wrong : runs.front();
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;
  for (const RunFigures& run : runs) {
    seconds.push_back(run.seconds);
    cpu_seconds.push_back(run.cpu_seconds);
  }
  result.seconds = median(std::move(seconds));
  result.cpu_seconds = median(std::move(cpu_seconds));
  return result;
}

}  // namespace faro::bench
