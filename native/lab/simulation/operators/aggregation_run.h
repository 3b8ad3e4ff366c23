// One run of a pipeline of aggregations over a simulated cluster: rows, tables, memory, timing and how it ends, all from one seed; and
// whether every group came once, with the state that the oracle has, and nothing was left.
#pragma once

#include <cstdint>

#include "lab/simulation/run_report.h"

namespace faro::simulation {

/// Runs the plan of a seed, as run_seed does, for operators.
RunReport run_aggregation_seed(uint64_t seed);

}  // namespace faro::simulation
