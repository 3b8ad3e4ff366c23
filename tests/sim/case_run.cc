#include "sim/case_run.h"
#include "support/expect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace faro::test {
namespace {

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

void run(const Case& what, uint64_t seed, ClusterShape shape, const SettingList& settings,
         const CaseScale& scale, Coverage& coverage, uint64_t& hash) {
  shape.configure = [&](Config& config, uint32_t) {
    for (const SettingList* list : {&settings, &what.settings}) {
      for (const auto& [name, value] : *list) {
        const Status status = config.set(name, std::string_view(value));
        EXPECT_TRUE(is_ok(status));
      }
    }
  };
  SimCluster cluster(seed, std::move(shape));
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
        Program program(session, session.worker(w), *board, host, seed, scale);
        (void)run_case(what, program);
      });
    }
  }
  const auto counters = [&] {
    std::string text;
    for (uint32_t node = 0; node < cluster.node_count(); ++node)
      text += fmt::format("node {}\n{}", node, describe(cluster.session(node).metrics()));
    return text;
  };
  const Status ran = cluster.run();
  ASSERT_TRUE(ran.ok()) << board->first_failure() << '\n'
                        << board->state(worker_count) << counters() << cluster.world().report();
  ASSERT_EQ(board->first_failure(), "") << board->state(worker_count) << counters();
  uint64_t memory = 0, file = 0, out = 0;
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    const SessionMetrics metrics = cluster.session(node).metrics();
    EXPECT_EQ(metrics.overflow_memory_bytes, 0u) << "node " << node;
    EXPECT_EQ(metrics.overflow_file_bytes, 0u) << "node " << node;
    if (what.check) {
      const Status status = what.check(metrics);
      EXPECT_TRUE(is_ok(status));
    }
    memory += metrics.overflow_memory_peak_bytes;
    file += metrics.overflow_file_peak_bytes;
    for (const WorkerMetrics& worker : metrics.workers) out += worker.frames_out_overflow;
  }
  const Status closed = cluster.close();
  EXPECT_TRUE(closed.ok()) << closed.to_string() << '\n' << cluster.world().report();
  hash = cluster.world().trace_hash();

  ++coverage.runs;
  coverage.rows += board->rows_checked.load();
  coverage.workers += worker_count;
  coverage.with_memory += memory > 0;
  coverage.with_file += file > 0;
  coverage.with_out_overflow += out > 0;
  coverage.with_large_rows += board->large_rows.load() > 0;
  coverage.with_stops += board->stops.load() > 0;
  coverage.with_cancels += board->cancels.load() > 0;
  coverage.with_held_batches += board->holds.load() > 0;
  coverage.with_detached += board->detaches.load() > 0;
  coverage.with_claims += board->claims.load() > 0;
}

}  // namespace

std::string Coverage::to_string() const {
  return fmt::format(
      "{} runs, {} workers, {} rows checked; runs that used overflow memory {}, the file {}, "
      "outgoing "
      "overflow {}, rows in fragments {}, stops {}, cancels {}, held batches {}, detached {}, "
      "claims {}",
      runs, workers, rows, with_memory, with_file, with_out_overflow, with_large_rows, with_stops,
      with_cancels, with_held_batches, with_detached, with_claims);
}

uint64_t run_in_simulation(const Case& what, uint64_t seed, ClusterShape shape,
                           const SettingList& settings, const CaseScale& scale,
                           Coverage& coverage) {
  uint64_t hash = 0;
  run(what, seed, std::move(shape), settings, scale, coverage, hash);
  return hash;
}

}  // namespace faro::test
