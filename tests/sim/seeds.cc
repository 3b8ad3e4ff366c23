#include "sim/seeds.h"

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

}  // namespace

std::vector<Runs> parts_of(uint64_t count, uint64_t parts) {
  std::vector<Runs> all;
  for (uint64_t part = 1; part <= parts; ++part) all.push_back({part, count / parts, parts});
  return all;
}

std::string name_of_part(const testing::TestParamInfo<Runs>& info) {
  return "part_" + std::to_string(info.index + 1);
}

bool any_seed(uint64_t) { return true; }

void for_each_seed(const Runs& runs, const std::function<void(uint64_t)>& run,
                   SeedKind& is_of_kind) {
  if (const char* only = std::getenv("SIM_SEED")) {
    const uint64_t seed = std::strtoull(only, nullptr, 10);
    ASSERT_TRUE(is_of_kind(seed)) << "SIM_SEED=" << seed << " is not a seed of this test";
    run_one(seed, run);
    return;
  }
  uint64_t number = 0;
  for (uint64_t seed = 1; number + runs.step < runs.first + runs.count * runs.step; ++seed) {
    if (!is_of_kind(seed)) continue;
    ++number;
    if (number < runs.first || (number - runs.first) % runs.step != 0) continue;
    run_one(seed, run);
    if (::testing::Test::HasFailure()) {
      std::fprintf(stderr, "failed with seed %llu: repeat with SIM_SEED=%llu\n",
                   static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
      return;
    }
  }
}

void expect_repeatable(uint64_t count, simulation::RunReport (&run)(uint64_t seed),
                       SeedKind& is_of_kind) {
  std::set<uint64_t> hashes;
  uint64_t runs = 0;
  const auto twice = [&](uint64_t seed) {
    const simulation::RunReport once = run(seed);
    const simulation::RunReport again = run(seed);
    EXPECT_EQ(once.hash, again.hash);
    EXPECT_EQ(once.coverage.to_string(), again.coverage.to_string());
    hashes.insert(once.hash);
    ++runs;
  };
  for_each_seed({1, count}, twice, is_of_kind);
  EXPECT_EQ(hashes.size(), runs);
}

}  // namespace faro::test
