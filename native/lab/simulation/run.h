// One run: a cluster, its queries and what goes wrong, all from one seed; and whether everything that
// always holds did hold.
#pragma once

#include <cstdint>
#include <string>

#include "lab/simulation/coverage.h"

namespace faro::simulation {

struct RunReport {
  uint64_t seed = 0;
  /// What did not hold, in a line; empty: everything did.
  std::string violation;
  /// For whoever looks into a violation: the plan, what every fiber was doing, the last decisions and
  /// log lines. Empty if there was none.
  std::string trace;
  /// Of every decision and every outcome: equal for equal runs.
  uint64_t hash = 0;
  /// What the run was like.
  Coverage coverage;
};

/// Runs a seed. The same seed of the same build gives the same report, wherever it runs.
/// Threads: one at a time in a process (it takes the log while it runs). Blocks: milliseconds, a large
/// cluster a second or two. After a violation the memory of the run is not given back: fibers ended in
/// the middle of calls.
RunReport run_seed(uint64_t seed);

}  // namespace faro::simulation
