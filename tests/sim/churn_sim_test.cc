// Hundreds of simulated sessions whose nodes come and go: what has to hold does, and the runs were what they are said to be.
#include <gtest/gtest.h>

#include <cstdio>

#include "lab/simulation/churn/churn_run.h"
#include "sim/seeds.h"

namespace faro::test {
namespace {

using simulation::Coverage;
using simulation::RunReport;

#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_UNDEFINED) || \
    defined(FARO_SANITIZE_THREAD)
constexpr uint64_t kSeeds = 100;
#else
constexpr uint64_t kSeeds = 1000;
#endif

TEST(ChurnSimulation, what_always_holds_does_hold_in_a_thousand_runs) {
  Coverage coverage;
  uint64_t runs = 0;
  for_each_seed(kSeeds, [&](uint64_t seed) {
    const RunReport report = simulation::run_churn_seed(seed);
    EXPECT_EQ(report.violation, "") << report.trace;
    coverage.merge(report.coverage);
    ++runs;
  });
  std::printf("%s", coverage.to_string().c_str());
  if (runs < kSeeds) return;  // SIM_SEED
  for (const char* list : {"all", "some", "itself"})
    EXPECT_GE(coverage.counted("lists at its beginning", list), runs / 5) << list;
  for (const char* often : {"joined", "drained", "number used again", "link wanted by a query",
                            "link wanted by both sides at once"})
    EXPECT_GE(coverage.counted("changes", often), runs) << often;
  for (const char* list : {"list of all", "list of some", "list of itself"})
    EXPECT_GE(coverage.counted("changes", list), runs / 4) << list;
  for (const char* what : {"removed while it lived", "killed", "came back", "cancelled", "cut",
                           "short stall", "query refused for a drain", "link refused for memory"})
    EXPECT_GE(coverage.counted("changes", what), runs / 20) << what;
  EXPECT_GE(coverage.counted("changes", "removed while it was drained"), runs / 50);
  EXPECT_GE(coverage.counted("connections", "cut"), runs / 20);
  EXPECT_GE(coverage.counted("its queries ended at workers", "done"), 5 * runs);
  EXPECT_GE(coverage.counted("its queries ended at workers", "peer_lost"), runs / 4);
}

TEST(ChurnSimulation, the_same_seed_gives_exactly_the_same_run_and_another_another) {
  expect_repeatable(kSeeds / 20, simulation::run_churn_seed);
}

}  // namespace
}  // namespace faro::test
