// One run of a session that changes: nodes that come and go while queries run, all from one seed.
#pragma once

#include <cstdint>

#include "lab/simulation/run_report.h"

namespace faro::simulation {

/// Runs the plan of a seed, as run_seed does, for a session that changes.
RunReport run_churn_seed(uint64_t seed);

/// A run of a cluster: with a fixed list (run_seed), or, for one seed in four, of a session that changes.
RunReport run_cluster_seed(uint64_t seed);

}  // namespace faro::simulation
