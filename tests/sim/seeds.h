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
/// Calls run for the first `count` seeds that are of a kind, as for_each_seed does.
void for_each_seed_of(bool (&is_of_kind)(uint64_t seed), uint64_t count,
                      const std::function<void(uint64_t seed)>& run);

/// Expects that one seed gives exactly one run, another seed another one.
void expect_repeatable(uint64_t count, simulation::RunReport (&run)(uint64_t seed));
/// Expects that one seed of a kind gives exactly one run, another seed another one.
void expect_repeatable_of(bool (&is_of_kind)(uint64_t seed), uint64_t count,
                          simulation::RunReport (&run)(uint64_t seed));

}  // namespace faro::test
