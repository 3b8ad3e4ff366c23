// What sets the bar for Faro, the plain loop and the copies: they do the whole job, with real processes.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "lab/bench/copies.h"
#include "lab/bench/plain_loop.h"
#include "support/expect.h"

namespace faro::bench {
namespace {

using Run = Result<std::vector<RunFigures>> (*)(const TwoStageJob&, const RunOptions&);

struct Bar {
  const char* name;
  Run run;
};

struct Size {
  uint32_t processes;
  uint32_t workers;
};

class EveryBar : public testing::TestWithParam<std::tuple<Bar, Size>> {};

void expect_verified(const Bar& bar, const TwoStageJob& job) {
  const Result<std::vector<RunFigures>> runs = bar.run(job, {.timed_rounds = 2});
  ASSERT_TRUE(test::is_ok(runs));
  ASSERT_EQ(runs.value().size(), 2u);
  for (const RunFigures& run : runs.value()) {
    EXPECT_EQ(run.totals.count, job.row_count());
    EXPECT_EQ(run.totals, job.expectation().totals);
    EXPECT_TRUE(run.verified());
    EXPECT_EQ(run.expected.hops, 2 * job.row_count());
  }
}

TEST_P(EveryBar, shuffles_every_row_of_every_width_once) {
  const auto& [bar, shape] = GetParam();
  for (const HashKind hash : {HashKind::finalizer, HashKind::multiplicative}) {
    for (const uint32_t row_bytes : kJobWidths) {
      const uint64_t rows = is_large(row_bytes) ? 11 : 20'001;
      const TwoStageJob job{shape.processes, shape.workers, rows, row_bytes, hash};
      if (!job.validate().ok()) continue;
      SCOPED_TRACE(std::string(hash_name(hash)) + ", " + std::to_string(row_bytes) + " bytes");
      expect_verified(bar, job);
    }
  }
}

TEST_P(EveryBar, ends_without_rows) {
  const auto& [bar, shape] = GetParam();
  expect_verified(bar, {shape.processes, shape.workers, 0});
}

std::string bar_name(const testing::TestParamInfo<std::tuple<Bar, Size>>& info) {
  const auto& [bar, shape] = info.param;
  return std::string(bar.name) + "_" + std::to_string(shape.processes) + "x" +
         std::to_string(shape.workers);
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryBar,
    testing::Combine(testing::Values(Bar{"plain_loop", run_plain_loop}, Bar{"copies", run_copies}),
                     testing::Values(Size{1, 1}, Size{2, 1}, Size{4, 2}, Size{1, 3}, Size{8, 1})),
    bar_name);

}  // namespace
}  // namespace faro::bench
