// What becomes of a query whose workers do not open the same stages: one has ended without, or opened it otherwise.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/query_cluster.h"

namespace faro::shuffle {
namespace {

constexpr uint32_t kStage = 7;

/// Three nodes of two workers; worker 2, of node 1, sends to worker 0, of node 0.
class QueryStages : public testing::Test {
 protected:
  QueryStages() {
    for (uint32_t n = 0; n < 3; ++n) queries_.push_back(cluster_.use(n, id_));
  }

  static ShuffleSpec spec(std::vector<uint32_t> senders, std::vector<uint32_t> receivers) {
    ShuffleSpec made;
    made.stage = kStage;
    made.row_bytes = 8;
    made.senders = std::move(senders);
    made.receivers = std::move(receivers);
    return made;
  }
  Status open(uint32_t worker, const ShuffleSpec& what) {
    return cluster_[worker / 2].open_stage(*queries_[worker / 2], worker, what,
                                           StageLists::of(what));
  }
  /// Worker 0 has waited for long.
  void await(const ShuffleSpec& what) {
    cluster_[0].await(*queries_[0], 0, kStage, what.senders, StageLists::of(what));
    cluster_.deliver_all();
  }
  void end_all() {
    for (uint32_t n = 0; n < 3; ++n) cluster_.end(n, *queries_[n]);
    cluster_.deliver_all();
  }
  void expect_failed_everywhere(Code code, const std::vector<std::string>& words) {
    for (uint32_t n = 0; n < 3; ++n) {
      ASSERT_TRUE(queries_[n]->failed()) << n;
      const Status& cause = queries_[n]->cause();
      EXPECT_EQ(cause.code(), code) << cause.to_string();
      EXPECT_EQ(cause.stage(), kStage);
      EXPECT_EQ(cause.query(), id_);
      for (const std::string& word : words) test::expect_contains(cause.message(), word);
    }
  }
  void expect_done_everywhere() {
    for (uint32_t n = 0; n < 3; ++n) {
      ASSERT_TRUE(queries_[n]->outcome_known()) << n;
      EXPECT_TRUE(test::is_ok(queries_[n]->outcome()));
      EXPECT_EQ(cluster_[n].running_count(), 0u);
    }
  }

  QueryCluster cluster_{3};
  const QueryId id_ = cluster_[0].begin();
  std::vector<std::shared_ptr<Query>> queries_;
  const ShuffleSpec gather_ = spec({2}, {0});
};

TEST_F(QueryStages, a_sender_that_ends_without_opening_fails_who_waits_for_it) {
  ASSERT_TRUE(open(0, gather_).ok());
  await(gather_);
  EXPECT_FALSE(queries_[0]->failed()) << "it may still open";
  cluster_[1].end(*queries_[1], 2);
  cluster_.deliver_all();
  expect_failed_everywhere(Code::query_unopened,
                           {"worker 2 of node 1 ended", "stage 7", "worker 0"});
  EXPECT_EQ(queries_[0]->cause().node(), 1u);
}

TEST_F(QueryStages, a_sender_that_had_ended_when_somebody_asks_does_as_well) {
  ASSERT_TRUE(open(0, gather_).ok());
  for (const uint32_t n : {1u, 2u}) cluster_.end(n, *queries_[n]);
  cluster_.deliver_all();
  await(gather_);
  cluster_.end(0, *queries_[0]);
  cluster_.deliver_all();
  expect_failed_everywhere(Code::query_unopened,
                           {"worker 2 of node 1 ended", "stage 7", "worker 0"});
}

TEST_F(QueryStages, a_sender_that_opens_after_somebody_has_asked_is_as_good_as_any) {
  ASSERT_TRUE(open(0, gather_).ok());
  await(gather_);
  ASSERT_TRUE(open(2, gather_).ok());
  cluster_[1].end(*queries_[1], 2);
  await(gather_);  // it has ended, and what it sent is still under way
  end_all();
  expect_done_everywhere();
}

TEST_F(QueryStages, who_asks_about_a_query_that_is_not_known_yet_is_answered_when_it_is) {
  QueryCluster cluster(2);
  const auto [id, asking] = cluster.begin_at(0);
  ASSERT_TRUE(cluster[0].open_stage(*asking, 0, gather_, StageLists::of(gather_)).ok());
  cluster[0].await(*asking, 0, kStage, gather_.senders, StageLists::of(gather_));
  cluster.deliver_all();
  EXPECT_FALSE(asking->failed());
  const auto late = cluster.use(1, id);
  cluster[1].end(*late, 2);
  cluster.deliver_all();
  EXPECT_EQ(asking->cause().code(), Code::query_unopened);
}

TEST_F(QueryStages, who_asks_about_a_query_whose_issuer_is_lost_there_is_told_so) {
  QueryCluster cluster(3);
  const auto [id, late] = cluster.begin_at(0, 2);
  cluster[1].on_peer_lost(2, kLost.of_node(2));  // node 0 has not noticed yet
  cluster[0].await(*late, 0, kStage, gather_.senders, StageLists::of(gather_));
  cluster.deliver_all();
  ASSERT_TRUE(late->failed());
  test::expect_error(late->cause(), Code::peer_lost, {kLost.message()});
}

TEST_F(QueryStages, who_asks_about_a_query_that_has_ended_there_is_told) {
  QueryCluster cluster(3);
  const QueryId id = cluster[2].begin();
  // Its issuer has failed it, and it is over everywhere but at node 0, where the plan comes late.
  const auto issuer = cluster.use(2, id);
  cluster[2].fail(*issuer, kCancelled);
  cluster.end(2, *issuer);
  const auto other = cluster.use(1, id);
  cluster.deliver(2, 1);
  cluster.end(1, *other);
  cluster.deliver(1, 2);
  cluster.wires[2][0].clear();
  const auto late = cluster.use(0, id);
  cluster[0].await(*late, 0, kStage, gather_.senders, StageLists::of(gather_));
  cluster[1].on_message(2, message_of(QueryMessageKind::outcome, id, Code::query_cancelled));
  cluster.deliver_all();
  EXPECT_TRUE(late->failed());
}

TEST_F(QueryStages, a_sender_that_opened_with_other_lists_fails_who_waits_for_it) {
  ASSERT_TRUE(open(0, gather_).ok());
  await(gather_);
  (void)open(2, spec({2}, {4}));
  cluster_.deliver_all();
  expect_failed_everywhere(Code::stage_mismatch,
                           {"worker 2 of node 1 opened stage 7 with senders 2, receivers 4",
                            "worker 0 opened stage 7 with senders 2, receivers 0"});
}

TEST_F(QueryStages, two_workers_of_a_node_that_open_a_stage_differently_fail_the_query) {
  ASSERT_TRUE(open(2, spec({2, 3}, {0})).ok());
  EXPECT_EQ(open(3, spec({2, 3}, {0, 1})).code(), Code::stage_mismatch);
  cluster_.deliver_all();
  expect_failed_everywhere(Code::stage_mismatch,
                           {"worker 2 opened it with senders 2, 3, receivers 0",
                            "worker 3 with senders 2, 3, receivers 0, 1"});
}

TEST_F(QueryStages, the_order_of_senders_does_not_matter_and_that_of_receivers_does) {
  EXPECT_EQ(StageLists::of(spec({2, 3}, {0, 1})).digest,
            StageLists::of(spec({3, 2}, {0, 1})).digest);
  EXPECT_NE(StageLists::of(spec({2, 3}, {0, 1})).digest,
            StageLists::of(spec({2, 3}, {1, 0})).digest);
  EXPECT_NE(StageLists::of(spec({2, 3}, {0})).digest, StageLists::of(spec({2}, {3, 0})).digest);
}

TEST_F(QueryStages, rows_for_a_stage_that_their_receiver_ended_without_opening_fail_the_query) {
  for (const bool ends_first : {false, true}) {
    QueryCluster cluster(2);
    const auto [id, at] = cluster.begin_at(0);
    (void)cluster.use(1, id);
    if (ends_first) cluster[0].end(*at, 0);
    cluster[0].add_unopened(*at, 0, kStage, 2, 0);
    EXPECT_EQ(at->failed(), ends_first);
    cluster[0].end(*at, 0);
    ASSERT_TRUE(at->failed());
    test::expect_error(at->cause(), Code::query_unopened, {"worker 0 of node 0 ended"});
    EXPECT_EQ(at->cause().stage(), kStage);
  }
}

TEST_F(QueryStages, rows_for_an_unopened_stage_count_for_each_sender_until_they_are_thrown_away) {
  for (const bool thrown_away : {false, true}) {
    QueryCluster cluster(3);
    const QueryId id = cluster[0].begin();
    ASSERT_TRUE(cluster[0].declare(id, {0, 1, 4, 5}).ok());
    const auto at = cluster.use(0, id);
    cluster[0].add_unopened(*at, 0, kStage, 2, 0);  // node 1, which takes no part
    for (int again = 0; again < 2; ++again) cluster[0].add_unopened(*at, 0, kStage, 4, 0);
    if (thrown_away) cluster[0].remove_unopened(*at, 0, kStage, 4);
    cluster[0].end(*at, 0);
    EXPECT_EQ(at->failed(), !thrown_away);
    if (!thrown_away) test::expect_contains(at->cause().message(), "in which worker 4 sends to it");
  }
}

// What was sent to a worker that never opened may still be under way when all have ended.
TEST_F(QueryStages, that_are_not_opened_by_all_whom_they_name_do_not_end_well) {
  ASSERT_TRUE(open(2, gather_).ok());
  end_all();
  EXPECT_FALSE(queries_[0]->outcome_known()) << "somebody may know more";
  cluster_[0].on_tick(1);
  EXPECT_FALSE(queries_[0]->outcome_known());
  cluster_[0].on_tick(2);
  cluster_.deliver_all();
  for (uint32_t n = 0; n < 3; ++n) {
    ASSERT_TRUE(queries_[n]->outcome_known()) << n;
    EXPECT_EQ(queries_[n]->outcome().code(), Code::stage_mismatch);
    EXPECT_EQ(cluster_[n].running_count(), 0u);
  }
}

// A session that closes has no more ticks.
TEST_F(QueryStages, that_are_not_opened_by_all_end_at_once_when_the_session_closes) {
  ASSERT_TRUE(open(0, spec({2}, {0})).ok());
  end_all();
  ASSERT_FALSE(queries_[0]->outcome_known());
  cluster_[0].close(Status(Code::peer_lost, "node 0 closed its session"));
  ASSERT_TRUE(queries_[0]->outcome_known());
  EXPECT_EQ(queries_[0]->outcome().code(), Code::peer_lost);
}

TEST_F(QueryStages, that_all_whom_they_name_have_opened_end_well_whoever_did_not) {
  const ShuffleSpec all = spec({0, 1, 2, 3, 4, 5}, {5, 0});
  for (uint32_t worker = 0; worker < 6; ++worker) ASSERT_TRUE(open(worker, all).ok());
  ShuffleSpec few = spec({1, 4}, {4, 2});
  few.stage = 8;
  for (const uint32_t worker : {1u, 2u, 4u}) ASSERT_TRUE(open(worker, few).ok());
  end_all();
  expect_done_everywhere();
}

TEST_F(QueryStages, a_worker_that_has_ended_opens_no_more) {
  cluster_[1].end(*queries_[1], 2);
  EXPECT_EQ(open(2, gather_).code(), Code::wrong_state);
  EXPECT_FALSE(queries_[1]->failed());
}

TEST_F(QueryStages, a_stage_names_only_workers_of_nodes_that_take_part) {
  const QueryId id = cluster_[0].begin();
  ASSERT_TRUE(cluster_[0].declare(id, {0, 1, 4}).ok());
  const auto query = cluster_.use(0, id);
  test::expect_error(cluster_[0].open_stage(*query, 0, gather_, StageLists::of(gather_)),
                     Code::invalid_argument, {"worker 2 of node 1 takes no part"});
}

}  // namespace
}  // namespace faro::shuffle
