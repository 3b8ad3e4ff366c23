// One run of a join over a simulated cluster: rows, kind, inputs, memory, timing and how it ends, all from one seed; and whether
// every pair came once, as the oracle has it, and nothing was left.
#pragma once

#include <cstdint>

#include "lab/simulation/run_report.h"

namespace faro::simulation {

/// Runs the plan of a seed, as run_seed does, for joins.
RunReport run_join_seed(uint64_t seed);

}  // namespace faro::simulation
