// Seeds: a simulated test over many runs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab/simulation/run_report.h"

namespace faro::test {

/// Whether a sanitizer makes this build ten times as slow: tests run fewer seeds then.
#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_UNDEFINED) || \
    defined(FARO_SANITIZE_THREAD)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

/// Some of the runs of a test that is cut into several cases, which run side by side: every `step`th
/// from the `first` on.
struct Runs {
  uint64_t first = 1;
  uint64_t count = 0;
  uint64_t step = 1;
};
/// `count` runs, dealt out to as many parts.
std::vector<Runs> parts_of(uint64_t count, uint64_t parts);
/// For INSTANTIATE_TEST_SUITE_P: "part_1", "part_2" …
std::string name_of_part(const testing::TestParamInfo<Runs>& info);

/// Whether a seed is of a kind.
using SeedKind = bool(uint64_t seed);
bool any_seed(uint64_t);

/// Calls run(seed) for these runs, counted over the seeds 1, 2 … of a kind, and stops after the
/// first that made the test fail, whose seed is printed. The environment's SIM_SEED=n runs n alone,
/// which fails in exactly the same way.
void for_each_seed(const Runs& runs, const std::function<void(uint64_t seed)>& run,
                   SeedKind& is_of_kind = any_seed);
/// For seeds 1 to `count`.
inline void for_each_seed(uint64_t count, const std::function<void(uint64_t seed)>& run) {
  for_each_seed(Runs{1, count}, run);
}

/// For the first `count` seeds of a kind: a seed gives exactly one run, another seed another one.
void expect_repeatable(uint64_t count, simulation::RunReport (&run)(uint64_t seed),
                       SeedKind& is_of_kind = any_seed);

}  // namespace faro::test
