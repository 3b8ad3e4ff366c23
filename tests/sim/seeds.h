// Seeds: a simulated test over many runs.
#pragma once

#include <cstdint>
#include <functional>

#include "lab/simulation/run_report.h"

namespace faro::test {

/// Calls run(1), run(2), … run(count) and stops after the first that made the test fail, whose seed
/// is printed. The environment's SIM_SEED=n runs n alone: it fails in exactly the same way;
/// SIM_SEED_COUNT=n replaces `count`, for long runs.
void for_each_seed(uint64_t count, const std::function<void(uint64_t seed)>& run);
/// The same of the first `count` seeds that are of a kind.
void for_each_seed_of(bool (&is_of_kind)(uint64_t seed), uint64_t count,
                      const std::function<void(uint64_t seed)>& run);

/// The same seed gives exactly the same run, another seed another one.
void expect_repeatable(uint64_t count, simulation::RunReport (&run)(uint64_t seed));
/// The same of seeds of a kind.
void expect_repeatable_of(bool (&is_of_kind)(uint64_t seed), uint64_t count,
                          simulation::RunReport (&run)(uint64_t seed));

}  // namespace faro::test
