// OperatorTest: operators over two real sessions, which leave nothing of what they took.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "node/session_access.h"
#include "support/expect.h"
#include "support/session_cluster.h"

namespace faro::test {

constexpr uint32_t kWorkers = 4;  // two on each of two nodes

class OperatorTest : public testing::Test {
 protected:
  void open(SettingList settings = {}) {
    settings.push_back({"cluster.workers", "2"});
    cluster_.emplace(2, settings);
    ASSERT_TRUE(is_ok(cluster_->status()));
    query_ = (*cluster_)[0].begin_query();
  }
  void TearDown() override {
    if (!cluster_) return;
    expect_nothing_left();
    cluster_.reset();
  }
  void expect_nothing_left() {
    for (uint32_t node = 0; node < 2; ++node) {
      node::NodeCore& core = SessionAccess::core((*cluster_)[node]);
      EXPECT_EQ(core.worker(0).context().operator_memory.used_bytes(), 0u);
      EXPECT_EQ(core.worker(0).context().operator_memory.spilled_in_memory(), 0u);
      EXPECT_EQ(core.overflow().memory_bytes(), 0u);
      EXPECT_EQ(core.overflow().file().used_bytes(), 0u);
    }
  }

  // --- ends

  /// Until all workers are where the query, or the sessions, are to end.
  void wait_for_all() const {
    while (there_ < kWorkers) std::this_thread::yield();
  }
  /// Runs `body` at every worker. When all are there, node 1 cancels the query.
  template <typename Body>
  void cancel_while(Body body) {
    std::thread canceller([&] {
      wait_for_all();
      EXPECT_TRUE(is_ok((*cluster_)[1].cancel_query(query_, "enough")));
      ended_ = true;
      for (uint32_t w = 0; w < kWorkers; ++w) cluster_->worker(w).wake();
    });
    cluster_->run_workers(body);
    canceller.join();
  }
  /// Runs `body` at every worker. When all are there, both sessions are closed, and nothing is left.
  template <typename Body>
  void close_while(Body body) {
    std::shared_ptr<node::NodeCore> cores[] = {
        SessionAccess::core((*cluster_)[0]).shared_from_this(),
        SessionAccess::core((*cluster_)[1]).shared_from_this()};
    std::thread closer([&] {
      wait_for_all();
      std::thread other([&] { EXPECT_TRUE(is_ok((*cluster_)[1].close())); });
      EXPECT_TRUE(is_ok((*cluster_)[0].close()));
      other.join();
      ended_ = true;
    });
    cluster_->run_workers(body);
    closer.join();
    TearDown();
  }

  std::optional<SessionCluster> cluster_;
  QueryId query_;
  std::atomic<uint32_t> there_{0};  // workers that are where it is to end
  std::atomic<bool> ended_{false};
};

}  // namespace faro::test
