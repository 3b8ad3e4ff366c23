// A cluster that connects and closes again and again leaves nothing behind in its process: no open file, and over verbs
// no queue pair and no registered memory. tests/softroce/ has it done 1 000 times (TEST_ROUNDS).
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>

#include "support/cluster.h"
#include "support/test_network.h"

namespace faro::test {
namespace {

size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

/// What the kernel counts for all RDMA devices, as text; empty on a machine without any.
std::string rdma_resources() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen("{ rdma resource show && rdma -d resource show mr; } 2>/dev/null", "r"), pclose);
  std::string text;
  std::array<char, 4096> part;
  while (pipe != nullptr && fgets(part.data(), part.size(), pipe.get()) != nullptr) {
    text += part.data();
  }
  return text;
}

TEST(ConnectRounds, leave_nothing_behind) {
  const char* const number = std::getenv("TEST_ROUNDS");
  const int rounds = number == nullptr ? 20 : std::atoi(number);
  size_t files = 0;
  std::string resources;
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
      ClusterPlan plan(2, {{"transport", transport}});
      const OpenCluster cluster(plan);
    }
    if (round > 0) continue;
    files = open_files();  // with what the libraries keep for the next time
    resources = rdma_resources();
  }
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(rdma_resources(), resources);
}

}  // namespace
}  // namespace faro::test
