// The cases over whole simulated clusters: every run is a seed, which draws the cluster, the timing
// and the interleaving of workers and network threads.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/cluster.h"
#include "sim/seeds.h"
#include "support/cases.h"

namespace faro::test {
namespace {

#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_UNDEFINED)
constexpr uint64_t kSeeds = 10;
#else
constexpr uint64_t kSeeds = 100;
#endif

class SimHost final : public Host {
 public:
  explicit SimHost(SimCluster& cluster) : cluster_(cluster), world_(cluster.world()) {}
  void between() override { world_.maybe_yield(); }
  void progress() override { world_.note_progress(); }
  void wake_all() override {
    for (uint32_t node = 0; node < cluster_.node_count(); ++node) {
      Session& session = cluster_.session(node);
      for (uint32_t w = 0; w < session.local_worker_count(); ++w) session.worker(w).wake();
    }
  }
  void work(uint64_t nanoseconds) override {
    world_.wait_until([] { return false; }, world_.now() + nanoseconds, "its own work");
  }

 private:
  SimCluster& cluster_;
  sim::World& world_;
};

ClusterShape shape_of(const Case& what, uint64_t seed) {
  sim::Random random(seed);
  ClusterShape shape;
  shape.knobs.stall_limit = 2'000'000'000;
  shape.workers_per_node.resize(random.between(1, 4));
  for (uint32_t& workers : shape.workers_per_node)
    workers = static_cast<uint32_t>(random.between(1, 3));
  shape.configure = [&what](Config& config, uint32_t) {
    const auto set = [&config](const std::string& name, const std::string& value) {
      const Status status = config.set(name, std::string_view(value));
      EXPECT_TRUE(status.ok()) << status.to_string();
    };
    set("ring.bytes", "4 KiB");
    set("transfer.threshold_bytes", "1 KiB");
    // A doorbell that does not ring must be seen as the deadlock it is, not end with a bounded
    // sleep, nor by a heartbeat (every 2.5 s).
    set("wait.sleep_ms", "10000");
    set("overflow.memory_bytes", what.check ? "1 MiB" : "64 KiB");
    for (const auto& [name, value] : what.settings) set(name, value);
  };
  return shape;
}

uint64_t rows_checked = 0;  // by all runs of this process

void run_checked(const Case& what, uint64_t seed, uint64_t& hash) {
  SimCluster cluster(seed, shape_of(what, seed));
  const Status opened = cluster.open_sessions();
  ASSERT_TRUE(opened.ok()) << opened.to_string() << '\n' << cluster.world().report();
  SimHost host(cluster);
  auto board = std::make_unique<Board>();
  uint32_t worker_count = 0;
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    Session& session = cluster.session(node);
    worker_count = session.worker_count();
    for (uint32_t w = 0; w < session.local_worker_count(); ++w) {
      cluster.spawn(node, w, [&, w] {
        Program program(session, session.worker(w), *board, host, seed,
                        CaseScale{.worker_bytes = 16 << 10});
        (void)run_case(what, program);
      });
    }
  }
  const Status ran = cluster.run();
  ASSERT_TRUE(ran.ok()) << board->first_failure() << '\n'
                        << board->state(worker_count) << cluster.world().report();
  ASSERT_EQ(board->first_failure(), "") << board->state(worker_count);
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    const SessionMetrics metrics = cluster.session(node).metrics();
    EXPECT_EQ(metrics.overflow_memory_bytes, 0u) << "node " << node;
    EXPECT_EQ(metrics.overflow_file_bytes, 0u) << "node " << node;
    if (what.check) {
      const Status status = what.check(metrics);
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }
  const Status closed = cluster.close();
  EXPECT_TRUE(closed.ok()) << closed.to_string() << '\n' << cluster.world().report();
  hash = cluster.world().trace_hash();
  rows_checked += board->rows_checked.load();
}

/// Returns the hash of all that happened.
uint64_t run_seed(const Case& what, uint64_t seed) {
  uint64_t hash = 0;
  run_checked(what, seed, hash);
  return hash;
}

class CasesSim : public testing::TestWithParam<size_t> {};

TEST_P(CasesSim, every_row_arrives_once_whole_and_in_order) {
  const Case& what = all_cases()[GetParam()];
  rows_checked = 0;
  for_each_seed(kSeeds, [&](uint64_t seed) { run_seed(what, seed); });
  RecordProperty("rows_checked", std::to_string(rows_checked));
  if (what.name != "empty_shuffles") {
    EXPECT_GT(rows_checked, 0u);
  }
}

TEST_P(CasesSim, the_same_seed_gives_exactly_the_same_run) {
  const Case& what = all_cases()[GetParam()];
  for_each_seed(3, [&](uint64_t seed) { EXPECT_EQ(run_seed(what, seed), run_seed(what, seed)); });
}

INSTANTIATE_TEST_SUITE_P(Cases, CasesSim, testing::Range<size_t>(0, all_cases().size()),
                         [](const auto& param) { return all_cases()[param.param].name; });

}  // namespace
}  // namespace faro::test
