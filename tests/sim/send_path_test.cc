// Programs of calls on the send path: every row arrives once, whole and in its sender's order,
// every query ends, and a seed is the same program each time. That two builds do the same is shown
// by send_path/compare_commits.
#include <gtest/gtest.h>

#include "sim/programs/cases.h"
#include "sim/send_path/runs.h"

namespace faro::test {
namespace {

constexpr uint64_t kPrograms = programs_of(500);

class SendPath : public ProgramTest {};

TEST_F(SendPath, rows_of_random_programs_arrive_once_and_in_order) {
  Counted counted = run_programs(kPrograms, send_path::run_program);
  EXPECT_LE(counted.sum["rows received"], counted.sum["rows sent"]);
  if (counted.programs < kPrograms) return;  // SIM_SEED
  EXPECT_GE(counted.sum["rows received"], kPrograms * 50);
  // A program that does nothing must not pass for one.
  for (const char* what :
       {"answer done", "answer would_wait", "answer holding", "answer stopped", "answer failed",
        "answer deadline", "answer end_of_stream", "rows above a frame", "claims given up",
        "claims committed shorter", "cuts", "deaths", "closed sessions", "frames in overflow",
        "rows dropped", "frames spilled"})
    EXPECT_GE(counted.with[what], kPrograms / 50) << what;
}

TEST_F(SendPath, a_seed_is_the_same_program_each_time) {
  expect_repeatable_programs(kPrograms / 10, send_path::run_program);
}

// A comparison that leaves a kind out has to see the rest.
TEST_F(SendPath, what_is_left_out_is_all_that_is_left_out) {
  const programs::LeftOut frames = programs::bit_of(programs::Kind::frame);
  const programs::RunResult all = send_path::run_program(1, 0, true);
  const programs::RunResult rest = send_path::run_program(1, frames, true);
  ASSERT_EQ(all.calls.size(), rest.calls.size());
  EXPECT_NE(all.digest, rest.digest);
  for (size_t i = 0; i < all.calls.size(); ++i) EXPECT_EQ(all.calls[i].call, rest.calls[i].call);
}

}  // namespace
}  // namespace faro::test
