// faro-lab soak: it passes for as long as all is well, and says so if it is not.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "command_runner.h"
#include "support/expect.h"

namespace faro::test {
namespace {

TEST(Soak, counts_kills_and_how_long_survivors_took_to_know) {
  const CommandResult result = run_faro_lab({"soak", "--kills", "8", "--seed", "5"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_TRUE(contains(result.output, "8 killed (told by ")) << result.output;
  EXPECT_TRUE(contains(result.output, "every loss told within 2.0 + 1 s by name; 8 looks"))
      << result.output;
  // Too few to say anything of the memory.
  EXPECT_TRUE(contains(result.output, "memory: not judged: that takes 16 looks, and there were 8"))
      << result.output;
  EXPECT_FALSE(contains(result.output, "flat")) << result.output;
}

TEST(Soak, pauses_stops_and_kills_by_chance) {
  const CommandResult result = run_faro_lab({"soak", "--seconds", "6", "--liveness-ms", "1000"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_TRUE(contains(result.output, "every row compared")) << result.output;
}

TEST(Soak, has_nodes_that_come_and_go_all_the_time) {
  const CommandResult result =
      run_faro_lab({"soak", "--churn", "--seconds", "6", "--liveness-ms", "1000"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_TRUE(contains(result.output, " joined, ")) << result.output;
  EXPECT_FALSE(contains(result.output, " 0 joined")) << result.output;
  EXPECT_TRUE(contains(result.output, "every row compared")) << result.output;
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string pid = std::to_string(process);
  std::ifstream list("/proc/" + pid + "/task/" + pid + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

// Somebody else kills a node: nothing that the soak has planned.
TEST(Soak, fails_if_a_node_ends_by_itself) {
  RunningCommand soak({"soak", "--seconds", "40", "--seed", "5"}, {}, FARO_LAB_PATH);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::vector<pid_t> nodes;
  while ((nodes = children_of(soak.pid())).size() < 4) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it has not started its nodes";
    sched_yield();
  }
  kill(nodes[0], SIGKILL);
  const CommandResult result = soak.finish();
  EXPECT_EQ(result.exit_code, 1) << result.output << result.errors;
  EXPECT_TRUE(contains(result.output, "broken: cluster 0 of seed 5: ")) << result.output;
  EXPECT_TRUE(contains(result.output, "node 0")) << result.output;
}

}  // namespace
}  // namespace faro::test
