// Runs in which the workers of a node share lanes (native/DESIGN.md#hc-18), and whoever misses a wake-up is seen to hang.
#pragma once

#include <cstdint>

#include "lab/simulation/run_report.h"

namespace faro::test {

/// A row comes for one worker of a node, while the other one is rung in its place, releases what the sender waits for, or looks at
/// the same time, and makes no call afterwards. Whoever sleeps does so for 10 s unless it is woken, and nothing is spilled before
/// that; a world in which nothing moves for 2 s is a violation. And rows for all of a node's workers are spilled, and read one after the other.
simulation::RunReport run_node_lanes_seed(uint64_t seed);

}  // namespace faro::test
