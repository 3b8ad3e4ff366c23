// Aggregations over simulated clusters, by seed: every group comes once, with the state that an oracle has, and nothing is left
// however the query ends; and the runs were what they are said to be.
#include <gtest/gtest.h>

#include <cstdio>

#include "lab/simulation/operators/aggregation_run.h"
#include "sim/seeds.h"

namespace faro::test {
namespace {

using simulation::Coverage;
using simulation::RunReport;

constexpr uint64_t kSeeds = kIsSanitized ? 100 : 2000, kParts = kIsSanitized ? 1 : 8;

class AggregationRuns : public testing::TestWithParam<Runs> {};

INSTANTIATE_TEST_SUITE_P(Each, AggregationRuns, testing::ValuesIn(parts_of(kSeeds, kParts)),
                         name_of_part);

TEST_P(AggregationRuns, give_every_group_once_and_leave_nothing) {
  Coverage coverage;
  uint64_t runs = 0;
  for_each_seed(GetParam(), [&](uint64_t seed) {
    const RunReport report = simulation::run_aggregation_seed(seed);
    EXPECT_EQ(report.violation, "") << report.trace;
    coverage.merge(report.coverage);
    ++runs;
  });
  std::printf("%s", coverage.to_string().c_str());
  if (runs < 200) return;  // SIM_SEED, or a sanitizer: too few for what is seldom
  EXPECT_GT(coverage.counted("workers", "done"), runs);
  EXPECT_GT(coverage.counted("workers", "failed"), runs / 4);
  for (const char* what : {"spilled", "passed rows", "stopped"})
    EXPECT_GT(coverage.counted("workers", what), runs / 50) << what;
  for (const char* how : {"cancelled", "left", "node killed", "full disk"})
    EXPECT_GT(coverage.counted("ends", how), runs / 50) << how;
  EXPECT_GT(coverage.counted("nodes", "with a file"), runs / 100);  // parts differ: 4 to 18
  EXPECT_GT(coverage.counted("nodes", "whose disk was full"), 0u);
}

TEST(AggregationSimulation, the_same_seed_gives_exactly_the_same_run_and_another_another) {
  expect_repeatable(kSeeds / 50, simulation::run_aggregation_seed);
}

}  // namespace
}  // namespace faro::test
