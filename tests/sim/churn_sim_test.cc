// Hundreds of simulated sessions whose nodes come and go: what has to hold does, and the runs were what they are said to be.
#include <gtest/gtest.h>

#include <cstdio>

#include "lab/simulation/churn/churn_plan.h"
#include "lab/simulation/churn/churn_run.h"
#include "sim/seeds.h"

namespace faro::test {
namespace {

using simulation::Coverage;
using simulation::RunReport;

constexpr uint64_t kSeeds = kIsSanitized ? 100 : 1000;

TEST(ChurnSimulation, what_always_holds_does_hold_in_a_thousand_runs) {
  Coverage coverage;
  uint64_t runs = 0;
  const auto run = [&](uint64_t seed) {
    const RunReport report = simulation::run_churn_seed(seed);
    EXPECT_EQ(report.violation, "") << report.trace;
    coverage.merge(report.coverage);
    ++runs;
  };
  for_each_seed({1, kSeeds}, run, simulation::has_churn);
  std::printf("%s", coverage.to_string().c_str());
  if (runs < kSeeds) return;  // SIM_SEED
  for (const char* list : {"all", "some", "itself"})
    EXPECT_GE(coverage.counted("lists at its beginning", list), runs / 5) << list;
  // What every run ends with would meet most of these alone.
  const auto drawn = [&](const char* what) {
    return coverage.counted("changes that were drawn", what);
  };
  for (const char* often :
       {"joined", "link wanted by a query", "link wanted by both sides at once"})
    EXPECT_GE(drawn(often), runs) << often;
  for (const char* what : {"list of all", "list of some", "list of itself", "drained",
                           "removed while it lived", "killed", "came back", "cut", "short stall",
                           "query refused for a drain", "link let go as idle"})
    EXPECT_GE(drawn(what), runs / 10) << what;
  for (const char* rare : {"cancelled", "number used again"})
    EXPECT_GE(drawn(rare), runs / 20) << rare;
  for (const char* rarest : {"removed while it was drained", "link refused for memory"})
    EXPECT_GE(drawn(rarest), runs / 100) << rarest;
  for (const char* delivery : {"node", "replicate"})
    EXPECT_GE(coverage.counted("delivery of its stages", delivery), runs / 2) << delivery;
  EXPECT_GE(coverage.counted("connections", "cut"), runs / 20);
  EXPECT_GE(coverage.counted("connections", "gone dark"), runs / 200);
  EXPECT_GE(coverage.counted("drawn queries ended at workers", "done"), 4 * runs);
  EXPECT_GE(coverage.counted("drawn queries ended at workers", "peer_lost"), runs / 2);
  // These limits are for about 15 endings in a run. A hundred runs are few for a share of one in fifty.
  const uint64_t seldom = runs / 50 + 5;
  const auto excused = [&](const char* why) { return coverage.counted("failures excused", why); };
  EXPECT_LE(excused("no memory for a link"), runs / 2);
  EXPECT_LE(excused("node drained before the declaration"), runs / 6);
  EXPECT_LE(excused("node had let go of a drained one"), seldom);
  EXPECT_LE(excused("issuer lost, and removed where rows came"), seldom);
}

TEST(ChurnSimulation, the_same_seed_gives_exactly_the_same_run_and_another_another) {
  expect_repeatable(kSeeds / 20, simulation::run_churn_seed, simulation::has_churn);
}

}  // namespace
}  // namespace faro::test
