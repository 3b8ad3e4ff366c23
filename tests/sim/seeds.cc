#include "sim/seeds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace faro::test {
namespace {

void run_one(uint64_t seed, const std::function<void(uint64_t)>& run) {
  SCOPED_TRACE("seed " + std::to_string(seed) +
               "; to repeat this run alone set SIM_SEED=" + std::to_string(seed));
  run(seed);
}

}  // namespace

void for_each_seed(uint64_t count, const std::function<void(uint64_t)>& run) {
  if (const char* only = std::getenv("SIM_SEED")) {
    run_one(std::strtoull(only, nullptr, 10), run);
    return;
  }
  if (const char* other = std::getenv("SIM_SEED_COUNT")) count = std::strtoull(other, nullptr, 10);
  for (uint64_t seed = 1; seed <= count; ++seed) {
    run_one(seed, run);
    if (::testing::Test::HasFailure()) {
      std::fprintf(stderr, "failed with seed %llu: repeat with SIM_SEED=%llu\n",
                   static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
      return;
    }
  }
}

void expect_repeatable(uint64_t count, simulation::RunReport (&run)(uint64_t seed)) {
  for_each_seed(count, [&](uint64_t seed) {
    const simulation::RunReport once = run(seed);
    const simulation::RunReport again = run(seed);
    EXPECT_EQ(once.hash, again.hash);
    EXPECT_EQ(once.coverage.to_string(), again.coverage.to_string());
  });
  EXPECT_NE(run(1).hash, run(2).hash);
}

}  // namespace faro::test
