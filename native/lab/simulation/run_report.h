// RunReport: what one simulated run was like, and what did not hold in it.
#pragma once

#include <cstdint>
#include <string>

#include "lab/simulation/coverage.h"
#include "lab/simulation/log_tail.h"

namespace faro::simulation {

struct RunReport {
  uint64_t seed = 0;
  /// What did not hold, in a line; empty: everything did.
  std::string violation;
  /// For whoever looks into a violation: the plan, what every fiber was doing, the last decisions and
  /// log lines. Empty if there was none.
  std::string trace;
  /// A hash of every decision and every outcome: equal for equal runs.
  uint64_t hash = 0;
  /// What the run was like.
  Coverage coverage;
};

/// The report of a `Run` that is made from its seed, and has run(), hash(), cover() and trace().
template <typename Run>
RunReport report_of(uint64_t seed) {
  RunReport report;
  report.seed = seed;
  LogTail log;
  Run run(seed);
  report.violation = run.run();
  report.hash = run.hash();
  run.cover(report.coverage);
  if (!report.violation.empty()) report.trace = run.trace() + log.text();
  return report;
}

}  // namespace faro::simulation
