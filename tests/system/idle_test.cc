// A session in which nothing happens takes no processor: neither its workers, which sleep, nor its network thread,
// whatever it waits for. Wake-ups are counted, since what one of them takes depends on the machine and on what else it does. tests/softroce/ has the same measured over RDMA.
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
constexpr long kWakeUps = 40;                    // of both network threads: some for each of those
constexpr long kTicks = 40;                      // of 10 ms: more is no sleep, on any machine

struct Work {       // of all network threads of this process
  long ticks = 0;   // user and system
  long sleeps = 0;  // and so wake-ups
  int threads = 0;
};

/// How often a thread went to sleep of its own accord.
long sleeps_of(const std::string& task) {
  std::ifstream file(task + "/status");
  const std::string name = "voluntary_ctxt_switches:";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return std::stol(line.substr(name.size()));
  ADD_FAILURE() << task << " has no " << name;
  return 0;
}

Work network_work() {
  Work sum;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), closedir);
  while (const dirent* task = readdir(tasks.get())) {
    const std::string path = std::string("/proc/self/task/") + task->d_name;
    std::ifstream file(path + "/stat");
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
    sum.ticks += user + system;
    sum.sleeps += sleeps_of(path);
    ++sum.threads;
  }
  return sum;
}

/// What both network threads take while all workers wait for nothing.
void measure(const SettingList& settings, Work& work) {
  SessionCluster cluster(2, settings);
  ASSERT_TRUE(is_ok(cluster.status()));
  Work before = network_work();
  while (before.threads != 2) before = network_work();  // a new thread has no name yet
  cluster.run_workers([&](uint32_t worker) {
    EXPECT_EQ(cluster.worker(worker).wait_until([] { return false; }, Wait::at_most(kIdle)),
              Outcome::deadline);
  });
  const Work after = network_work();
  work = {after.ticks - before.ticks, after.sleeps - before.sleeps, after.threads};
}

TEST(IdleSession, takes_no_processor) {
  for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
    Work work;
    ASSERT_NO_FATAL_FAILURE(measure({{"transport", transport}}, work));
    std::printf("%s: %ld wake-ups and %ld ticks in %lld s\n", transport.c_str(), work.sleeps,
                work.ticks, static_cast<long long>(kIdle.count()));
    EXPECT_LE(work.sleeps, kWakeUps) << transport;
    EXPECT_GT(work.sleeps, 0) << transport << ": not even for a heartbeat";
    EXPECT_LT(work.ticks, kTicks) << transport;
  }
}

// The measure can fail: this one does what it says.
TEST(IdleSession, takes_a_processor_if_it_is_told_to_poll) {
  for (const std::string& transport : transports_to_test({})) {
    if (transport != "verbs") continue;
    Work work;
    ASSERT_NO_FATAL_FAILURE(measure({{"transport", transport}, {"verbs.busy_poll", "1"}}, work));
    EXPECT_GE(work.ticks, kTicks);
    return;
  }
  GTEST_SKIP() << "only verbs has a mode that polls";
}

}  // namespace
}  // namespace faro::test
