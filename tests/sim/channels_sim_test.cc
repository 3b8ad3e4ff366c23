// Thousands of simulated runs of endpoints whose peers come and go: what has to hold does, and the runs were what
// they are said to be.
#include <gtest/gtest.h>

#include <cstdio>

#include "lab/simulation/channels/channel_plan.h"
#include "lab/simulation/channels/channel_run.h"
#include "sim/seeds.h"

namespace faro::test {
namespace {

using simulation::Coverage;
using simulation::RunReport;

constexpr uint64_t kSeeds = kIsSanitized ? 200 : 2000, kParts = kIsSanitized ? 1 : 4;

class ChannelRuns : public testing::TestWithParam<Runs> {};

INSTANTIATE_TEST_SUITE_P(Each, ChannelRuns, testing::ValuesIn(parts_of(kSeeds, kParts)),
                         name_of_part);

TEST_P(ChannelRuns, hold_what_always_holds) {
  Coverage coverage;
  uint64_t runs = 0;
  for_each_seed(GetParam(), [&](uint64_t seed) {
    const RunReport report = simulation::run_channel_seed(seed);
    EXPECT_EQ(report.violation, "") << report.trace;
    coverage.merge(report.coverage);
    ++runs;
  });
  std::printf("%s", coverage.to_string().c_str());
  if (runs < GetParam().count) return;  // SIM_SEED
  // A million tiny runs must not pass for a million.
  for (uint32_t kind = 0; kind < simulation::kPeerFaultKinds; ++kind) {
    const char* name = simulation::fault_name(static_cast<simulation::PeerFaultKind>(kind));
    EXPECT_GE(coverage.counted("faults", name), runs / 20) << name;
  }
  for (const char* how :
       {"cancelled", "closed", "connect_failed", "limit_exceeded", "resource_limit"})
    EXPECT_GE(coverage.counted("sides of channels ended with", how), runs / 10) << how;
  EXPECT_GE(coverage.counted("sides of channels ended with", "peer_lost"), runs / 50);
  EXPECT_GE(coverage.counted("sides of channels ended with", "ok"), 5 * runs);
  EXPECT_GE(coverage.counted("connections", "cut"), runs / 5);
  EXPECT_GE(coverage.counted("connections", "gone dark"), runs / 60);
  for (const char* what :
       {"claims that found no room", "entered by another thread", "frames held beside others"})
    EXPECT_GE(coverage.counted("pollers", what), 5 * runs) << what;
}

TEST(ChannelSimulation, the_same_seed_gives_exactly_the_same_run_and_another_another) {
  expect_repeatable(kSeeds / 20, simulation::run_channel_seed);
}

}  // namespace
}  // namespace faro::test
