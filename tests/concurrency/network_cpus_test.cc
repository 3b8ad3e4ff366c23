// network.cpus: on which CPUs the network thread of a session or an endpoint runs.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "faro/session.h"
#include "support/expect.h"
#include "support/traces.h"

namespace faro::test {
namespace {

/// What a thread of this process may run on; 0: the calling one.
cpu_set_t cpus_of(int thread) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(sched_getaffinity(thread, sizeof cpus, &cpus), 0);
  return cpus;
}

uint32_t last_cpu(const cpu_set_t& cpus) {
  uint32_t last = 0;
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) last = cpu;
  }
  return last;
}

std::set<int> threads() {
  std::set<int> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    threads.insert(std::stoi(task.path().filename()));
  return threads;
}

Result<std::unique_ptr<Session>> open_with(const std::string& cpus) {
  Config config;
  EXPECT_TRUE(config.set("cluster.nodes", "127.0.0.1:0").ok());
  EXPECT_TRUE(config.set("network.cpus", cpus).ok());
  return Session::open(config);
}

TEST(NetworkCpus, are_those_of_the_network_thread_alone) {
  const std::set<int> before = threads();
  const cpu_set_t own = cpus_of(0);
  const uint32_t cpu = last_cpu(own);
  const auto session = value_of(open_with(std::to_string(cpu)));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  size_t pinned = 0;
  for (const int thread : threads()) {
    const cpu_set_t cpus = cpus_of(thread);
    if (before.contains(thread)) {
      EXPECT_TRUE(CPU_EQUAL(&cpus, &own)) << "workers run where they ran";
    } else if (CPU_EQUAL(&cpus, &one)) {
      ++pinned;
    }
  }
  EXPECT_EQ(pinned, 1u) << "with network.cpus = " << cpu;
}

TEST(NetworkCpus, that_this_process_may_not_use_are_refused_by_name) {
  const Traces before = Traces::look();
  expect_error(open_with("1023").status(), Code::config_invalid,
               {"network.cpus = 1023", "may not run on any of the CPUs 1023"});
  EXPECT_EQ(Traces::left_since(before), "");
  EXPECT_TRUE(is_ok(open_with("").status()));
}

}  // namespace
}  // namespace faro::test
