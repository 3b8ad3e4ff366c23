// Causes of last resort: a worker has closed a shuffle before its end, and may still say why.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "shuffle/query/last_resorts.h"
#include "unit/query_cluster.h"

namespace faro::shuffle {
namespace {

constexpr base::Nanoseconds kTellDelay = LastResorts::kTellDelay;
constexpr base::Nanoseconds kClosedAt = 5'000'000'000;
const Status kClosed(Code::query_cancelled, "worker 2 closed its sender");
const Status kFailed(Code::query_failed, "worker 2 failed: a bad row");

/// Worker 2, of node 1, has closed a shuffle of a query that all three nodes use.
class ClosedShuffle : public testing::Test {
 protected:
  ClosedShuffle() : queries_(cluster_.begin_everywhere().second) {
    cluster_[1].abandon(*queries_[1], 2, kClosed, kClosedAt);
  }
  void expect_nobody_told() {
    cluster_.deliver_all();
    for (const auto& query : queries_) EXPECT_FALSE(query->failed());
  }
  void expect_told(const Status& cause) {
    cluster_.deliver_all();
    for (const auto& query : queries_) {
      ASSERT_TRUE(query->failed());
      EXPECT_EQ(query->cause().code(), cause.code());
      EXPECT_EQ(query->cause().message(), cause.message());
    }
  }

  QueryCluster cluster_{3};
  std::vector<std::shared_ptr<Query>> queries_;
};

TEST_F(ClosedShuffle, is_told_when_its_time_has_come_and_not_before) {
  EXPECT_EQ(cluster_.nodes[1].looks, 1);
  EXPECT_EQ(cluster_[1].next_due(), kClosedAt + kTellDelay);
  cluster_[1].on_due(kClosedAt + kTellDelay - 1);
  cluster_[1].on_tick(kClosedAt + kTellDelay - 1);
  expect_nobody_told();
  EXPECT_EQ(cluster_.nodes[1].alerts, 0);
  cluster_[1].on_due(kClosedAt + kTellDelay);
  EXPECT_EQ(cluster_.nodes[1].alerts, 1);
  expect_told(kClosed);
  EXPECT_EQ(cluster_[1].next_due(), base::kForever);
}

TEST_F(ClosedShuffle, is_told_by_a_tick_if_there_was_no_memory_for_more) {
  cluster_[1].on_tick(kClosedAt + kTellDelay);
  expect_told(kClosed);
}

TEST_F(ClosedShuffle, is_told_at_once_if_the_worker_says_no_more) {
  cluster_[1].tell_abandoned(*queries_[1], 3);  // another one
  expect_nobody_told();
  cluster_[1].tell_abandoned(*queries_[1], 2);
  expect_told(kClosed);
}

TEST_F(ClosedShuffle, is_told_by_a_session_that_closes) {
  cluster_[1].close(Status(Code::peer_lost, "node 1 closed its session"));
  expect_told(kClosed);
}

TEST_F(ClosedShuffle, is_not_told_where_a_cause_was_given) {
  cluster_[1].fail(*queries_[1], kFailed);
  cluster_[1].tell_abandoned(*queries_[1], 2);
  cluster_[1].on_due(kClosedAt + kTellDelay);
  expect_told(kFailed);
}

TEST_F(ClosedShuffle, is_not_told_where_another_node_has_given_a_cause) {
  cluster_[2].fail(*queries_[2], kFailed);
  cluster_.deliver_all();
  cluster_[1].on_due(kClosedAt + kTellDelay);
  expect_told(kFailed);
}

TEST_F(ClosedShuffle, is_what_its_worker_closed_first) {
  cluster_[1].abandon(*queries_[1], 2, kFailed, kClosedAt + 1);
  EXPECT_EQ(cluster_[1].next_due(), kClosedAt + kTellDelay);
  EXPECT_EQ(cluster_.nodes[1].looks, 1);
  cluster_[1].tell_abandoned(*queries_[1], 2);
  expect_told(kClosed);
}

TEST_F(ClosedShuffle, is_that_of_the_worker_that_was_first_if_none_says_more) {
  cluster_[1].abandon(*queries_[1], 3, kFailed, kClosedAt + 1);
  cluster_[1].on_due(kClosedAt + 2 * kTellDelay);
  expect_told(kClosed);
}

TEST_F(ClosedShuffle, is_told_of_each_query_in_its_time) {
  auto [id, later] = cluster_.begin_everywhere();
  cluster_[1].abandon(*later[1], 2, kClosed, kClosedAt + 10);
  cluster_[1].on_due(kClosedAt + kTellDelay);
  expect_told(kClosed);
  EXPECT_FALSE(later[0]->failed());
  EXPECT_EQ(cluster_[1].next_due(), kClosedAt + 10 + kTellDelay);
  std::swap(queries_, later);
  cluster_[1].on_due(kClosedAt + 10 + kTellDelay);
  expect_told(kClosed);
}

}  // namespace
}  // namespace faro::shuffle
