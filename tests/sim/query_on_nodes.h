// QueryOnNodes: a query on simulated nodes of one worker each, with rings of 4 KiB and a drain delay of a second, which is long against
// all else that happens.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "faro/shuffle.h"
#include "sim/cluster.h"

namespace faro::test {

class QueryOnNodes : public testing::Test {
 protected:
  static constexpr base::Nanoseconds kSecond = 1'000'000'000;
  static constexpr base::Nanoseconds kDrainDelay = kSecond;
  static constexpr uint32_t kRing = 4096;
  using NumberSettings = std::map<std::string, uint64_t>;

  void start(uint32_t nodes, const NumberSettings& settings) {
    ClusterShape shape;
    shape.workers_per_node.assign(nodes, 1);
    shape.knobs.stall_limit = 1'000 * kSecond;
    shape.configure = [settings](Config& config, uint32_t) {
      NumberSettings all = settings;
      all.merge(NumberSettings{{"ring.bytes", kRing},
                               {"transfer.threshold_bytes", kRing / 2},
                               {"drain.delay_us", kDrainDelay / 1000}});
      for (const auto& [key, value] : all) EXPECT_TRUE(config.set(key, value).ok()) << key;
    };
    cluster_ = std::make_unique<SimCluster>(1, shape);
    ASSERT_TRUE(cluster_->open_sessions().ok()) << cluster_->world().report();
    began_ = cluster_->world().now();
    query_ = cluster_->session(0).begin_query();
  }
  void run() { ASSERT_TRUE(cluster_->run().ok()) << cluster_->world().report(); }

  /// A node's part in the query, which it ends.
  void spawn(uint32_t node, std::function<void(Worker& worker)> part, Outcome end = Outcome::done) {
    cluster_->spawn(node, 0, [this, node, end, part = std::move(part)] {
      Worker& worker = cluster_->session(node).worker(0);
      part(worker);
      EXPECT_EQ(worker.end_query(query_), end);
    });
  }
  /// `row_bytes`: 0 for rows with a length each.
  static Shuffle open(Worker& worker, const QueryId& query, uint32_t stage, uint32_t row_bytes,
                      std::vector<uint32_t> senders, std::vector<uint32_t> receivers) {
    Result<Shuffle> shuffle =
        worker.open_shuffle({query, stage, row_bytes, std::move(senders), std::move(receivers)});
    EXPECT_TRUE(shuffle.ok());
    return std::move(shuffle).value();
  }
  /// Takes the rest of a shuffle, or ends it.
  static void end(Shuffle& shuffle) {
    if (shuffle.sender().ok()) {
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    }
    Batch batch;
    while (shuffle.receiver().ok() && shuffle.receiver()->receive(batch) == Outcome::done) {
    }
    shuffle.close();
  }

  base::Nanoseconds passed() const { return cluster_->world().now() - began_; }
  void sleep_until(base::Nanoseconds time) {
    if (passed() < time) cluster_->sleep(time - passed());
  }
  SessionMetrics metrics(uint32_t node) { return cluster_->session(node).metrics(); }
  WorkerMetrics at(uint32_t node) { return cluster_->session(node).worker(0).metrics(); }

  std::unique_ptr<SimCluster> cluster_;
  base::Nanoseconds began_ = 0;
  QueryId query_;
};

}  // namespace faro::test
