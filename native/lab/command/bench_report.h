// Shows the results of a benchmark: as a table for people, or as JSON for storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/text.h"
#include "lab/bench/contest.h"

namespace faro::command::lab {

/// One contest and what belongs to it.
struct ContestReport {
  std::string title;  ///< "4 processes × 1 worker"
  std::vector<bench::ContestResult> results;
  std::optional<uint32_t> pinned_cpu;
  uint32_t laps = 0;
};

/// "4 processes × 1 worker".
std::string shape_text(const bench::TwoStageJob& job);

/// The tuned sockets baseline among them; null if it did not take part.
const bench::ContestResult* baseline_of(const std::vector<bench::ContestResult>& results);

/// How many times faster than the baseline, per row (row counts may differ); by wall time.
double times_faster(const bench::RunFigures& run, const bench::RunFigures& baseline);
/// How many times less CPU time a row takes than in the baseline (row counts may differ).
double times_less_cpu(const bench::RunFigures& run, const bench::RunFigures& baseline);

/// All results are verified.
bool all_verified(const std::vector<ContestReport>& reports);

/// One table over all contests. Seconds of a contestant that ran with fewer rows than the others of
/// its contest are scaled to theirs and marked with a *. "Cold" is the first round of fresh processes.
std::string contest_table(const std::vector<ContestReport>& reports);

/// "verified", or what is wrong.
std::string verdict_text(const bench::RunFigures& run);

/// What came and what was expected, as members of `result`.
void put_totals(Json& result, const bench::RunFigures& run);
/// Wall and CPU time of each.
Json runs_json(const std::vector<bench::RunFigures>& runs);

Json contest_json(const ContestReport& report);
/// The metrics of each.
Json nodes_json(const std::vector<bench::NodeReport>& nodes);

}  // namespace faro::command::lab
