// Shows the results of a benchmark: as a table for people, or as JSON for storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/text.h"
#include "lab/bench/carrier.h"

namespace faro::command::lab {

/// What came of a carrier's runs.
struct CarrierResult {
  bench::Carrier carrier = bench::Carrier::faro_auto;
  bench::TwoStageJob job;
  bench::RunFigures median;
  std::vector<bench::RunFigures> runs;
  std::optional<bench::RunFigures> cold;  ///< median of the first rounds, if they warm up
  std::vector<double> connect_seconds;    ///< of each run; none of sockets
  std::vector<bench::NodeReport> nodes;   ///< of the last run of Faro in C++
};

/// The results of carriers that ran one job, and what belongs to them.
struct TwoStageReport {
  std::string title;  ///< "4 processes × 1 worker"
  std::vector<CarrierResult> results;
  std::optional<uint32_t> pinned_cpu;
  uint32_t laps = 0;
};

/// "4 processes × 1 worker".
std::string shape_text(const bench::TwoStageJob& job);

/// The tuned sockets baseline among them; null if it did not take part.
const CarrierResult* baseline_of(const std::vector<CarrierResult>& results);

/// How many times faster than the baseline, per row (row counts may differ); by wall time.
double times_faster(const bench::RunFigures& run, const bench::RunFigures& baseline);

/// All results are verified.
bool all_verified(const TwoStageReport& report);

/// A table of the results. "Cold" is the first round of fresh processes.
std::string table_of(const TwoStageReport& report);

/// "verified", or what is wrong.
std::string verdict_text(const bench::RunFigures& run);

/// What came and what was expected, as members of `result`.
void put_totals(Json& result, const bench::RunFigures& run);
/// Wall and CPU time of each.
Json runs_json(const std::vector<bench::RunFigures>& runs);

Json report_json(const TwoStageReport& report);
/// The metrics of each.
Json nodes_json(const std::vector<bench::NodeReport>& nodes);

}  // namespace faro::command::lab
