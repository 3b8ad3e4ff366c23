// The cases with real processes: rings of 4 KiB, eight processes, an overflow budget of 1 MiB each,
// over shared memory, over TCP, and over both.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/cases.h"
#include "support/child.h"
#include "support/session_cluster.h"
#include "support/test_network.h"
#include "support/watchdog.h"
#include "system/node_processes.h"

namespace faro::test {
namespace {

constexpr std::chrono::seconds kLimit{80};  // below the test's own, so that a hang says where

class ProcessHost final : public Host {
 public:
  explicit ProcessHost(Session& session) : session_(session) {}
  void wake_all() override {
    for (uint32_t w = 0; w < session_.local_worker_count(); ++w) session_.worker(w).wake();
  }
  void work(uint64_t nanoseconds) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  }

 private:
  Session& session_;
};

/// Boards that forked processes share.
class SharedBoards {
 public:
  explicit SharedBoards(size_t count) : bytes_(count * sizeof(Board)) {
    void* const at =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::abort();
    boards_ = new (at) Board[count]();
  }
  ~SharedBoards() { munmap(boards_, bytes_); }
  SharedBoards(const SharedBoards&) = delete;
  SharedBoards& operator=(const SharedBoards&) = delete;
  Board* get() { return boards_; }

 private:
  const size_t bytes_;
  Board* boards_;
};

struct Shape {
  std::string name;
  uint32_t nodes;
  std::string workers;
  std::string transport;
};

// Many nodes where that is cheap; elsewhere fewer, with different numbers of workers.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = [] {
    std::vector<Shape> made;
    for (const std::string& transport : transports_to_test({"shm", "tcp", "auto"})) {
      if (transport == "shm" || transport == "tcp") {
        made.push_back({transport + "_8", 8, "1", transport});
      } else {
        made.push_back({transport + "_4", 4, "2,1,3,1", transport});
      }
    }
    return made;
  }();
  return all;
}

constexpr uint64_t kSeeds[] = {11, 12};

// One node of the run: every worker a thread.
int run_node(const Case& what, const Shape& shape, uint32_t node, const std::string& addresses,
             ListeningSocket listener, const SettingList& settings, Board* boards,
             const CaseScale& scale) {
  const Result<Config> config = config_of(node, addresses, settings);
  Result<std::unique_ptr<Session>> opened = config.status();
  if (config.ok()) opened = Session::open(*config, std::move(listener));
  if (!opened.ok()) {
    boards->fail(opened.status().to_string());
    return 1;
  }
  Session& session = **opened;
  Board* board = boards;
  Watchdog watchdog(kLimit, [&] {
    return fmt::format("{} on {}, node {}: {}\n{}{}", what.name, shape.name, node,
                       board->first_failure(), board->state(session.worker_count()),
                       describe(session.metrics()));
  });
  ProcessHost host(session);
  bool good = true;
  for (const uint64_t seed : kSeeds) {
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < session.local_worker_count(); ++w) {
      threads.emplace_back([&, w] {
        Program program(session, session.worker(w), *board, host, seed, scale);
        (void)run_case(what, program);
        session.worker(w).release_ownership();
      });
    }
    for (std::thread& thread : threads) thread.join();
    const SessionMetrics metrics = session.metrics();
    // Before the last run others may have begun the next one: its rows come while workers here still
    // wait for the outcome of this one.
    if (seed == kSeeds[std::size(kSeeds) - 1] &&
        (metrics.overflow_memory_bytes != 0 || metrics.overflow_file_bytes != 0))
      board->fail(
          fmt::format("node {}: something is left in overflow\n{}", node, describe(metrics)));
    if (what.check && !what.check(metrics).ok())
      board->fail(fmt::format("node {}: {}", node, what.check(metrics).to_string()));
    // Beyond overflow.memory_bytes only what describes the parts of the file: 256 bytes for each, which
    // has 4 KiB at least; and of each worker one whose part is not taken yet, or was given back just now.
    const uint64_t describing =
        metrics.overflow_file_peak_bytes / 16 + uint64_t{256} * session.local_worker_count();
    if (metrics.overflow_memory_peak_bytes > (1 << 20) + describing)
      board->fail(fmt::format("node {}: more overflow memory than allowed: {} with {} in the file",
                              node, metrics.overflow_memory_peak_bytes,
                              metrics.overflow_file_peak_bytes));
    if (board->failed.load() != 0) {
      good = false;
      break;
    }
    ++board;
  }
  const Status closed = session.close();
  if (good && !closed.ok()) boards->fail(closed.to_string());
  return good && closed.ok() ? 0 : 1;
}

class CasesProcesses : public testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(CasesProcesses, every_row_arrives_once_whole_and_in_order) {
  const Case& what = all_cases()[std::get<0>(GetParam())];
  const Shape& shape = shapes()[std::get<1>(GetParam())];
  SettingList settings = small_rings({{"cluster.workers", shape.workers},
                                      {"transport", shape.transport},
                                      {"overflow.memory_bytes", "1 MiB"}});
  settings.insert(settings.end(), what.settings.begin(), what.settings.end());
  CaseScale scale{.worker_bytes = 128 << 10};
  // More than the budget: the file is needed.
  if (what.name == "send_everything_first") scale.worker_bytes = 3 << 20;

  BoundNodes bound(shape.nodes);
  SharedBoards shared(std::size(kSeeds));  // one per seed
  Board* const boards = shared.get();
  std::vector<std::unique_ptr<Child>> nodes;
  for (uint32_t n = 0; n < shape.nodes; ++n) {
    nodes.push_back(std::make_unique<Child>([&, n](const Child::Side&) {
      return run_node(what, shape, n, bound.addresses, std::move(bound.listeners[n]), settings,
                      boards, scale);
    }));
  }
  for (uint32_t n = 0; n < shape.nodes; ++n) EXPECT_EQ(nodes[n]->wait_for_end(), 0) << "node " << n;
  uint64_t rows = 0;
  for (size_t i = 0; i < std::size(kSeeds); ++i) {
    EXPECT_EQ(boards[i].first_failure(), "") << "seed " << kSeeds[i];
    rows += boards[i].rows_checked.load();
  }
  if (what.name != "empty_shuffles") {
    EXPECT_GT(rows, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CasesProcesses,
                         testing::Combine(testing::Range<size_t>(0, all_cases().size()),
                                          testing::Range<size_t>(0, shapes().size())),
                         [](const auto& param) {
                           return all_cases()[std::get<0>(param.param)].name + "_" +
                                  shapes()[std::get<1>(param.param)].name;
                         });

}  // namespace
}  // namespace faro::test
