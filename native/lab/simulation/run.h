// One run: a cluster, its queries and what goes wrong, all from one seed; and whether everything that
// always holds did hold.
#pragma once

#include <cstdint>

#include "lab/simulation/run_report.h"

namespace faro::simulation {

/// Runs a seed. The same seed of the same build gives the same report, wherever it runs.
/// Threads: one at a time in a process (it takes the log while it runs). Blocks: milliseconds, a large
/// cluster a second or two. After a violation the memory of the run is not given back: fibers ended in
/// the middle of calls.
RunReport run_seed(uint64_t seed);

}  // namespace faro::simulation
