// One run of endpoints: peers that come and go, their channels, and what goes wrong, all from one seed; and whether
// everything that always holds did hold.
#pragma once

#include <cstdint>

#include "lab/simulation/run.h"

namespace faro::simulation {

/// Runs the plan of a seed, as run_seed does, for endpoints.
RunReport run_channel_seed(uint64_t seed);

}  // namespace faro::simulation
