// The cases over whole simulated clusters: every run is a seed, which draws the case, the cluster, its
// settings, the timing, and the interleaving of workers and network threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "sim/case_run.h"
#include "sim/seeds.h"

namespace faro::test {
namespace {

constexpr uint64_t kSeeds = kIsSanitized ? 5 : 50;
constexpr uint64_t kClusters = kIsSanitized ? 100 : 1000;

// A doorbell that does not ring must be seen as the deadlock it is, not end with a bounded sleep, nor
// by a heartbeat (every 2.5 s).
SettingList strict() { return {{"wait.sleep_ms", "10000"}}; }
constexpr base::Nanoseconds kStallLimit = 2'000'000'000;

uint64_t run_small(const Case& what, uint64_t seed, Coverage& coverage) {
  sim::Random random(seed);
  ClusterShape shape;
  shape.knobs.stall_limit = kStallLimit;
  shape.workers_per_node.resize(random.between(1, 4));
  for (uint32_t& workers : shape.workers_per_node)
    workers = static_cast<uint32_t>(random.between(1, 3));
  SettingList settings = small_rings(strict());
  settings.push_back({"overflow.memory_bytes", what.check ? "1 MiB" : "64 KiB"});
  return run_in_simulation(what, seed, shape, settings, CaseScale{.worker_bytes = 16 << 10},
                           coverage);
}

class CasesSim : public testing::TestWithParam<size_t> {};

TEST_P(CasesSim, every_row_arrives_once_whole_and_in_order) {
  const Case& what = all_cases()[GetParam()];
  Coverage coverage;
  for_each_seed(kSeeds, [&](uint64_t seed) { run_small(what, seed, coverage); });
  std::printf("%s\n", coverage.to_string().c_str());
  if (what.name != "empty_shuffles") {
    EXPECT_GT(coverage.rows, 0u);
  }
}

TEST_P(CasesSim, the_same_seed_gives_exactly_the_same_run) {
  const Case& what = all_cases()[GetParam()];
  Coverage coverage;
  for_each_seed(3, [&](uint64_t seed) {
    EXPECT_EQ(run_small(what, seed, coverage), run_small(what, seed, coverage));
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, CasesSim, testing::Range<size_t>(0, all_cases().size()),
                         [](const auto& param) { return all_cases()[param.param].name; });

// --- any cluster

const Case& draw_case(sim::Random& random) {
  // Half of the runs are random plans.
  if (random.one_in(2))
    return find_case(random.one_in(4) ? "random_plan_cancelled" : "random_plan");
  return all_cases()[random.below(all_cases().size())];
}

void run_any(uint64_t seed, Coverage& coverage) {
  sim::Random random(seed ^ 0x5eed);
  const Case& what = draw_case(random);
  ClusterShape shape;
  shape.knobs.stall_limit = kStallLimit;
  // Small clusters more often: their runs are quick.
  shape.workers_per_node.resize(random.one_in(3) ? random.between(5, 8) : random.between(1, 4));
  for (uint32_t& workers : shape.workers_per_node)
    workers = static_cast<uint32_t>(random.one_in(3) ? random.between(1, 4) : 1);
  const uint64_t ring = uint64_t{4096} << random.below(3);
  const uint64_t threshold = random.one_in(4) ? 0 : random.below(ring / 2 + 1);
  SettingList settings = strict();
  const auto set = [&settings](const char* name, uint64_t value) {
    settings.push_back({name, std::to_string(value)});
  };
  set("ring.bytes", ring);
  set("transfer.threshold_bytes", threshold);
  set("ring.per_lane", random.between(1, 3));
  set("wait.yields", random.below(3) * 10);
  set("drain.delay_us", random.one_in(4) ? 0 : random.between(1, 2000));
  constexpr uint64_t kBudgets[] = {0, 4096, 64 << 10, 1 << 20};
  set("overflow.memory_bytes", what.check ? 1 << 20 : kBudgets[random.below(4)]);
  CaseScale scale;
  scale.ring_bytes = ring;
  scale.worker_bytes = std::min<uint64_t>(random.between(1, 48) << 10, 6 * ring);
  SCOPED_TRACE("case " + what.name + ", " + std::to_string(shape.workers_per_node.size()) +
               " nodes, " + [&] {
                 std::string text;
                 for (const auto& [name, value] : settings) text += name + "=" + value + " ";
                 return text;
               }());
  run_in_simulation(what, seed, shape, settings, scale, coverage);
}

TEST(CasesSimClusters, a_thousand_seeds_over_any_case_cluster_and_settings) {
  Coverage coverage;
  for_each_seed(kClusters, [&](uint64_t seed) { run_any(seed, coverage); });
  std::printf("%s\n", coverage.to_string().c_str());
  RecordProperty("coverage", coverage.to_string());
  if (coverage.runs >= 1000) {  // what the runs are for must not get lost unseen
    EXPECT_GT(coverage.with_memory, 100u);
    EXPECT_GT(coverage.with_file, 100u);
    EXPECT_GT(coverage.with_out_overflow, 50u);
    EXPECT_GT(coverage.with_large_rows, 50u);
    EXPECT_GT(coverage.with_stops, 50u);
    EXPECT_GT(coverage.with_cancels, 50u);
    EXPECT_GT(coverage.with_detached, 20u);
  }
}

}  // namespace
}  // namespace faro::test
