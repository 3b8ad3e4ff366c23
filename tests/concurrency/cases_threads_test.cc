// The cases with several sessions in one process, a thread per worker: over tcp, shared memory and
// the local link. With real threads, so that the sanitizers see the real protocol.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "support/cases.h"
#include "support/session_cluster.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

// Below the test's own limit, so that a hang says where.
constexpr std::chrono::seconds kLimit{40};

class ThreadHost final : public Host {
 public:
  explicit ThreadHost(SessionCluster& cluster) : cluster_(cluster) {}
  void wake_all() override {
    for (uint32_t w = 0; w < cluster_.worker_count(); ++w) cluster_.worker(w).wake();
  }
  void work(uint64_t nanoseconds) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  }

 private:
  SessionCluster& cluster_;
};

struct Shape {
  const char* name;
  uint32_t nodes;
  const char* workers;
  const char* transport;
};

constexpr Shape kShapes[] = {
    {"one_worker", 1, "1", "tcp"},
    {"one_node_of_3", 1, "3", "tcp"},
    {"tcp_3_nodes", 3, "1,2,1", "tcp"},
    {"shm_3_nodes", 3, "2,1,1", "shm"},
};

class CasesThreads : public testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(CasesThreads, every_row_arrives_once_whole_and_in_order) {
  const Case& what = all_cases()[std::get<0>(GetParam())];
  const Shape& shape = kShapes[std::get<1>(GetParam())];
#if defined(FARO_SANITIZE_THREAD)
  if (std::string_view(shape.transport) == "shm")
    GTEST_SKIP() << "the thread sanitizer sees one mapping only";
#endif
  SettingList settings = small_rings({{"cluster.workers", shape.workers},
                                      {"transport", shape.transport},
                                      {"overflow.memory_bytes", "64 KiB"},
                                      {"wait.sleep_ms", "1000"}});
  settings.insert(settings.end(), what.settings.begin(), what.settings.end());
  // Slow consumers spill a ring after each drain delay: give slow machines a longer one.
  if (what.check) settings.push_back({"overflow.memory_bytes", "1 MiB"});
  SessionCluster cluster(shape.nodes, settings);
  ASSERT_TRUE(is_ok(cluster.status()));
  ThreadHost host(cluster);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    auto board = std::make_unique<Board>();
    Watchdog watchdog(kLimit, [&] {
      std::string text = fmt::format("{} on {}, seed {}: {}\n{}", what.name, shape.name, seed,
                                     board->first_failure(), board->state(cluster.worker_count()));
      for (uint32_t n = 0; n < cluster.size(); ++n)
        text += fmt::format("node {}\n{}", n, describe(cluster[n].metrics()));
      return text;
    });
    cluster.run_workers([&](uint32_t w) {
      const uint32_t node = cluster.node_of(w);
      Program program(cluster[node], cluster.worker(w), *board, host, seed, CaseScale{});
      (void)run_case(what, program);
    });
    ASSERT_EQ(board->first_failure(), "") << "seed " << seed << "\n"
                                          << board->state(cluster.worker_count());
    for (uint32_t n = 0; n < cluster.size(); ++n) {
      const SessionMetrics metrics = cluster[n].metrics();
      EXPECT_EQ(metrics.overflow_memory_bytes, 0u) << "node " << n;
      EXPECT_EQ(metrics.overflow_file_bytes, 0u) << "node " << n;
      if (what.check) {
        EXPECT_TRUE(is_ok(what.check(metrics)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CasesThreads,
                         testing::Combine(testing::Range<size_t>(0, all_cases().size()),
                                          testing::Range<size_t>(0, std::size(kShapes))),
                         [](const auto& param) {
                           return all_cases()[std::get<0>(param.param)].name + "_" +
                                  kShapes[std::get<1>(param.param)].name;
                         });

}  // namespace
}  // namespace faro::test
