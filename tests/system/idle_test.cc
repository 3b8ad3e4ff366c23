// A session in which nothing happens takes no processor: neither its workers, which sleep, nor its network thread,
// whatever it waits for. tests/softroce/ has the same measured over RDMA.
#include <dirent.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "support/session_cluster.h"
#include "support/test_network.h"

namespace faro::test {
namespace {

constexpr auto kIdle = std::chrono::seconds(4);  // more than one heartbeat, of 2.5 s
constexpr long kTicks = 2;                       // of 10 ms: what it takes to send those, emulated

struct Ticks {
  long network = 0;  // of all network threads of this process, user and system
  int threads = 0;
};

Ticks network_ticks() {
  Ticks sum;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), closedir);
  while (const dirent* task = readdir(tasks.get())) {
    std::ifstream file(std::string("/proc/self/task/") + task->d_name + "/stat");
    std::string line;
    std::getline(file, line);
    const size_t name = line.find('(');
    const size_t end = line.rfind(')');
    if (name == std::string::npos || line.substr(name + 1, end - name - 1) != "faro-net") continue;
    // State, ten numbers, then utime and stime.
    std::istringstream fields(line.substr(end + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    long user = 0;
    long system = 0;
    fields >> user >> system;
    sum.network += user + system;
    ++sum.threads;
  }
  return sum;
}

/// What both network threads take while all workers wait for nothing.
void measure(const SettingList& settings, long& ticks) {
  SessionCluster cluster(2, settings);
  ASSERT_TRUE(is_ok(cluster.status()));
  Ticks before = network_ticks();
  while (before.threads != 2) before = network_ticks();  // a new thread has no name yet
  cluster.run_workers([&](uint32_t worker) {
    EXPECT_EQ(cluster.worker(worker).wait_until([] { return false; }, Wait::at_most(kIdle)),
              Outcome::deadline);
  });
  ticks = network_ticks().network - before.network;
}

TEST(IdleSession, takes_no_processor) {
  for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
    long ticks = 0;
    ASSERT_NO_FATAL_FAILURE(measure({{"transport", transport}}, ticks));
    std::printf("%s: %ld ticks in %lld s\n", transport.c_str(), ticks,
                static_cast<long long>(kIdle.count()));
    EXPECT_LE(ticks, kTicks) << transport;
  }
}

// The measure can fail: this one does what it says.
TEST(IdleSession, takes_a_processor_if_it_is_told_to_poll) {
  for (const std::string& transport : transports_to_test({})) {
    if (transport != "verbs") continue;
    long ticks = 0;
    ASSERT_NO_FATAL_FAILURE(measure({{"transport", transport}, {"verbs.busy_poll", "1"}}, ticks));
    EXPECT_GT(ticks, 20 * kTicks);
    return;
  }
  GTEST_SKIP() << "only verbs has a mode that polls";
}

}  // namespace
}  // namespace faro::test
