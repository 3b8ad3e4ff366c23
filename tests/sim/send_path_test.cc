// Programs of calls on the send path: every row arrives once, whole and in its sender's order,
// every query ends, and a seed is the same program each time. That two builds do the same is shown
// by send_path/compare_commits.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "faro/log.h"
#include "sim/seeds.h"
#include "sim/send_path/runs.h"

namespace faro::test {
namespace {

using send_path::RunResult;
using send_path::Tally;

#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_UNDEFINED) || \
    defined(FARO_SANITIZE_THREAD)
constexpr uint64_t kPrograms = 100;
#else
constexpr uint64_t kPrograms = 500;
#endif

class SendPath : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::off); }  // programs make mistakes
  void TearDown() override { set_log_level(LogLevel::info); }
};

TEST_F(SendPath, rows_of_random_programs_arrive_once_and_in_order) {
  Tally tally;
  uint64_t sent = 0, received = 0, programs = 0;
  for_each_seed(kPrograms, [&](uint64_t seed) {
    const RunResult result = send_path::run_program(seed);
    EXPECT_EQ(result.violation, "");
    for (const auto& [what, count] : result.tally) tally[what] += count > 0;
    sent += result.sent;
    received += result.received;
    ++programs;
  });
  for (const auto& [what, count] : tally)
    std::printf("%6llu programs: %s\n", static_cast<unsigned long long>(count), what.c_str());
  EXPECT_LE(received, sent);
  if (programs < kPrograms) return;  // SIM_SEED
  EXPECT_GE(received, programs * 50);
  // A program that does nothing must not pass for one.
  for (const char* what :
       {"answer done", "answer would_wait", "answer holding", "answer stopped", "answer failed",
        "answer deadline", "answer end_of_stream", "rows above a frame", "claims given up",
        "claims committed shorter", "cuts", "deaths", "closed sessions", "frames in overflow",
        "rows dropped", "frames spilled"})
    EXPECT_GE(tally[what], programs / 50) << what;
}

TEST_F(SendPath, a_seed_is_the_same_program_each_time) {
  for_each_seed(kPrograms / 10, [](uint64_t seed) {
    const RunResult once = send_path::run_program(seed);
    EXPECT_EQ(once.digest, send_path::run_program(seed).digest);
    // What is kept for people changes nothing.
    EXPECT_EQ(once.digest, send_path::run_program(seed, 0, true).digest);
    EXPECT_NE(once.digest, send_path::run_program(seed + 1).digest);
  });
}

// A comparison that leaves a kind out has to see the rest.
TEST_F(SendPath, what_is_left_out_is_all_that_is_left_out) {
  const send_path::LeftOut frames = send_path::bit_of(send_path::Kind::frame);
  const RunResult all = send_path::run_program(1, 0, true);
  const RunResult rest = send_path::run_program(1, frames, true);
  ASSERT_EQ(all.calls.size(), rest.calls.size());
  EXPECT_NE(all.digest, rest.digest);
  for (size_t i = 0; i < all.calls.size(); ++i) EXPECT_EQ(all.calls[i].call, rest.calls[i].call);
}

}  // namespace
}  // namespace faro::test
