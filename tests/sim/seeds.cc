#include "sim/seeds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>

namespace faro::test {
namespace {

void run_one(uint64_t seed, const std::function<void(uint64_t)>& run) {
  SCOPED_TRACE("seed " + std::to_string(seed) +
               "; to repeat this run alone set SIM_SEED=" + std::to_string(seed));
  run(seed);
}

bool is_any(uint64_t) { return true; }

}  // namespace

void for_each_seed(uint64_t count, const std::function<void(uint64_t)>& run) {
  for_each_seed_of(is_any, count, run);
}

void for_each_seed_of(bool (&is_of_kind)(uint64_t), uint64_t count,
                      const std::function<void(uint64_t)>& run) {
  if (const char* only = std::getenv("SIM_SEED")) {
    const uint64_t seed = std::strtoull(only, nullptr, 10);
    ASSERT_TRUE(is_of_kind(seed)) << "SIM_SEED=" << seed << " is not a seed of this test";
    run_one(seed, run);
    return;
  }
  if (const char* other = std::getenv("SIM_SEED_COUNT")) count = std::strtoull(other, nullptr, 10);
  uint64_t runs = 0;
  for (uint64_t seed = 1; runs < count; ++seed) {
    if (!is_of_kind(seed)) continue;
    ++runs;
    run_one(seed, run);
    if (::testing::Test::HasFailure()) {
      std::fprintf(stderr, "failed with seed %llu: repeat with SIM_SEED=%llu\n",
                   static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
      return;
    }
  }
}

void expect_repeatable(uint64_t count, simulation::RunReport (&run)(uint64_t seed)) {
  expect_repeatable_of(is_any, count, run);
}

void expect_repeatable_of(bool (&is_of_kind)(uint64_t), uint64_t count,
                          simulation::RunReport (&run)(uint64_t seed)) {
  std::set<uint64_t> hashes;
  uint64_t runs = 0;
  for_each_seed_of(is_of_kind, count, [&](uint64_t seed) {
    const simulation::RunReport once = run(seed);
    const simulation::RunReport again = run(seed);
    EXPECT_EQ(once.hash, again.hash);
    EXPECT_EQ(once.coverage.to_string(), again.coverage.to_string());
    hashes.insert(once.hash);
    ++runs;
  });
  EXPECT_EQ(hashes.size(), runs);
}

}  // namespace faro::test
