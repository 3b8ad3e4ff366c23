// What becomes of queries when nodes are lost, leave and return, messages fed by hand.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "faro/log.h"
#include "unit/query_cluster.h"

namespace faro::shuffle {
namespace {

constexpr uint64_t kNextIncarnation = 2001;  // of node 1

void lose_and_return(QueryCluster& cluster) {
  for (const uint32_t n : {0u, 2u}) {
    cluster[n].on_peer_lost(1, kLost);
    cluster[n].on_peer_joined(1, kNextIncarnation);
  }
}

TEST(QueryLosses, keep_queries_from_a_node_that_comes_after_they_were_begun) {
  QueryCluster cluster(2);
  cluster[0].on_peer_lost(1, kLost);
  const QueryId id = cluster[0].begin();
  cluster[0].on_peer_joined(1, kNextIncarnation);
  expect_error(cluster.use(0, id)->cause(), Code::peer_lost, {"began before", "had come back"});
  EXPECT_FALSE(cluster.use(0, cluster[0].begin())->failed());
}

TEST(QueryLosses, a_query_begun_before_a_node_came_back_fails_by_name_and_does_not_reach_it) {
  QueryCluster cluster(3);
  const QueryId unused = cluster[0].begin();
  lose_and_return(cluster);
  const auto elsewhere = cluster.use(2, unused);
  EXPECT_FALSE(elsewhere->failed()) << "only its issuer knows how old it is";
  const auto query = cluster.use(0, unused);
  test::expect_error(query->cause(), Code::peer_lost, {"node 1"});
  EXPECT_TRUE(cluster.wires[0][1].empty()) << "its next incarnation knows nothing of it";
  cluster.deliver(0, 2);
  EXPECT_TRUE(elsewhere->failed());
  cluster.end(0, *query);
  cluster.end(2, *elsewhere);
  cluster.deliver_all();
  EXPECT_TRUE(elsewhere->outcome_known()) << "nobody waits for the node that came back";
  EXPECT_EQ(cluster[0].running_count() + cluster[2].running_count(), 0u);
}

TEST(QueryLosses, an_issuer_that_takes_no_part_fails_what_it_declares_too_late) {
  QueryCluster cluster(3);
  const QueryId id = cluster[0].begin();
  lose_and_return(cluster);
  const auto query = cluster.use(2, id);
  EXPECT_TRUE(cluster[0].declare(id, {2, 3, 4, 5}).ok());
  cluster.deliver(0, 2);
  EXPECT_EQ(query->cause().code(), Code::peer_lost);
}

TEST(QueryLosses, a_query_used_before_a_loss_is_not_made_whole_by_a_return) {
  QueryCluster cluster(3);
  const auto query = cluster.use(2, cluster[0].begin());
  lose_and_return(cluster);
  EXPECT_EQ(query->cause().code(), Code::peer_lost);
}

// A hostile member may guess the ids of queries to come, and may be the node that is lost.
TEST(QueryLosses, what_was_only_said_of_a_query_before_a_loss_does_not_spoil_it_after_the_return) {
  for (const uint32_t speaker : {0u, 1u}) {
    QueryCluster cluster(3);
    QueryId id = cluster[0].begin();
    ++id.counter;  // the next one
    QueryMessage stop = stop_of(id, 0, 2 * speaker);
    cluster[2].on_message(speaker, stop);
    const auto heard = cluster[2].hear(id, speaker);
    cluster[2].fail_by_sender(*heard, 1, Status(Code::limit_exceeded, "too many"));
    lose_and_return(cluster);
    EXPECT_EQ(cluster[0].begin(), id);
    EXPECT_FALSE(cluster.use(0, id)->failed());
    const auto query = cluster.use(2, id);
    EXPECT_FALSE(query->failed()) << query->cause().to_string();
    EXPECT_EQ(cluster[2].stops(*query, 0).empty(), speaker == 1) << "it has another life";
  }
}

TEST(QueryLosses, a_query_begun_after_a_node_came_back_contains_it) {
  QueryCluster cluster(3);
  lose_and_return(cluster);
  const auto [id, query] = cluster.begin_at(0);
  EXPECT_FALSE(query->failed());
  cluster.end(0, *query);
  cluster.end(2, *cluster.use(2, id));
  cluster.deliver_all();
  EXPECT_FALSE(query->outcome_known()) << "node 1 has not ended";
}

TEST(QueryLosses, what_ended_in_a_former_life_is_not_taken_for_what_begins_in_the_next) {
  QueryCluster cluster(3);
  const QueryId former{1, 1001, 1, 0};
  const auto query = cluster.use(0, former);
  const auto late = cluster.use(0, {2, 1001, 1, 0});
  cluster[0].on_peer_lost(1, kLost);
  cluster.end(0, *query);
  cluster[0].on_peer_joined(1, kNextIncarnation);
  cluster.end(0, *late);
  EXPECT_EQ(cluster[0].running_count(), 0u);
  for (const uint64_t counter : {1u, 2u})
    EXPECT_FALSE(cluster.use(0, {counter, kNextIncarnation, 1, 0})->failed());
  EXPECT_EQ(cluster[0].use({3, 1001, 1, 0}).status().code(), Code::peer_lost);
}

// One line for one cause, however many queries it fails; it names the peer and the queries.
TEST(QueryLosses, are_one_line_of_the_log) {
  QueryCluster cluster(2);
  std::vector<std::shared_ptr<Query>> queries;
  for (int i = 0; i < 10; ++i) queries.push_back(cluster.use(0, cluster[0].begin()));
  std::vector<std::string> lines;
  set_log_sink([&lines](LogLevel level, std::string_view line) {
    if (level >= LogLevel::warning) lines.emplace_back(line);
  });
  cluster[0].on_peer_lost(1, kLost);
  set_log_sink({});
  ASSERT_EQ(lines.size(), 1u) << lines.back();
  EXPECT_EQ(lines[0],
            "node 0: queries 0:1, 0:2, 0:3, 0:4, 0:5, 0:6, 0:7, 0:8 and 2 more failed: peer_lost: "
            "node 1 (host:7): "
            "connection reset");
  EXPECT_EQ(cluster[0].failed_count(), 10u);
  for (const auto& query : queries) EXPECT_EQ(query->cause().code(), Code::peer_lost);
}

TEST(QueryLosses,
     rows_that_came_before_their_query_began_are_forgotten_with_the_life_that_sent_them) {
  QueryCluster cluster(3);
  const QueryId id = cluster[0].begin();
  const auto heard = cluster[2].hear(id, 1);
  cluster[2].add_unopened(*heard, 4, 7, 2, 0);
  cluster[2].on_peer_lost(1, kLost);
  cluster[2].on_peer_joined(1, kNextIncarnation);
  const auto query = cluster.use(2, id);
  ASSERT_EQ(query, heard);
  cluster.end(2, *query);
  EXPECT_FALSE(query->failed()) << query->cause().to_string();
}

TEST(QueryLosses, a_lost_participant_fails_the_queries_that_contain_it_and_no_others) {
  QueryCluster cluster(3);
  const QueryId with = cluster[0].begin();
  const QueryId without = cluster[0].begin();
  for (const uint32_t n : {0u, 2u}) ASSERT_TRUE(cluster[n].declare(without, {0, 1, 4, 5}).ok());
  const auto a = cluster.use(0, with);
  const auto c = cluster.use(2, with);
  const auto other_a = cluster.use(0, without);
  const auto other_c = cluster.use(2, without);
  cluster[0].on_peer_lost(1, kLost);
  EXPECT_TRUE(a->failed());
  EXPECT_EQ(a->cause().code(), Code::peer_lost);
  EXPECT_EQ(a->cause().message(), kLost.message());
  EXPECT_FALSE(other_a->failed());
  cluster.wires[0][1].clear();
  cluster.deliver(0, 2);
  EXPECT_TRUE(c->failed()) << "whoever sees the loss tells the others";
  EXPECT_FALSE(other_c->failed());
  cluster[2].on_peer_lost(1, kLost);
  // Both end without the lost one.
  cluster.end(0, *a);
  cluster.end(2, *c);
  cluster.end(0, *other_a);
  cluster.end(2, *other_c);
  for (int i = 0; i < 4; ++i) cluster.deliver(2, 0), cluster.deliver(0, 2);
  EXPECT_TRUE(a->outcome_known() && c->outcome_known());
  EXPECT_TRUE(other_a->outcome_known() && other_a->cause().ok());
  EXPECT_EQ(cluster[0].running_count(), 0u);
  EXPECT_EQ(cluster[2].running_count(), 0u);
  // And what begins later with the lost one fails at once.
  const QueryId later = cluster[0].begin();
  EXPECT_TRUE(cluster.use(0, later)->failed());
}

TEST(QueryLosses, a_lost_issuer_is_the_end) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(0, 1);
  cluster[0].on_peer_lost(1, kLost);
  EXPECT_TRUE(query->failed());
  EXPECT_TRUE(query->outcome_known()) << "nobody else will answer";
  cluster.end(0, *query);
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

TEST(QueryLosses, a_query_that_is_first_used_after_its_issuer_was_lost_is_over) {
  QueryCluster cluster(3);
  const QueryId id = cluster[1].begin();
  cluster[0].on_peer_lost(1, kLost);
  for (const Status& status : {cluster[0].declare(id, {0, 1, 4, 5}), cluster[0].use(id).status()}) {
    EXPECT_EQ(status.code(), Code::peer_lost) << status.to_string();
    EXPECT_EQ(status.message(), kLost.message());
  }
  // What others still say of it is not remembered: nobody would end it.
  QueryMessage fail = message_of(QueryMessageKind::fail, id, Code::peer_lost);
  cluster[0].on_message(2, fail);
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

TEST(QueryLosses, a_worker_that_comes_after_the_end_with_a_lost_issuer_hears_of_the_loss) {
  QueryCluster cluster(2);
  const QueryId id = cluster[1].begin();
  ASSERT_NE(cluster[0].hear(id, 1), nullptr);  // its rows came
  cluster[0].on_peer_lost(1, kLost);
  const auto used = cluster[0].use(id);
  EXPECT_EQ(used.status().code(), Code::peer_lost) << used.status().to_string();
  EXPECT_EQ(used.status().message(), kLost.message());
}

TEST(QueryLosses, where_a_query_is_not_used_yet_nobody_is_needed_but_its_issuer) {
  QueryCluster cluster(3);
  const QueryId id = cluster[0].begin();
  for (const uint32_t n : {0u, 2u}) ASSERT_NE(cluster[n].hear(id, 1), nullptr);
  cluster[2].on_peer_lost(1, kLost);  // it takes no part, as node 2 will hear
  ASSERT_TRUE(cluster[2].declare(id, {0, 1, 4, 5}).ok());
  EXPECT_FALSE(cluster.use(2, id)->failed());
  cluster.deliver_all();
  EXPECT_FALSE(cluster[0].find(id)->failed());
}

TEST(QueryLosses,
     a_query_that_failed_before_it_was_declared_is_remembered_nowhere_once_it_has_ended) {
  QueryCluster cluster(3);
  const QueryId id = cluster[0].begin();
  (void)cluster[1].cancel(id, Status(Code::query_cancelled, "before it was declared"));
  cluster.deliver_all();
  ASSERT_TRUE(cluster[0].declare(id, {0, 1, 2, 3}).ok());  // node 2 takes no part
  for (const uint32_t n : {0u, 1u}) cluster.end(n, *cluster.use(n, id));
  cluster.deliver_all();
  for (const uint32_t n : {0u, 1u, 2u}) EXPECT_EQ(cluster[n].running_count(), 0u) << "node " << n;
}

TEST(QueryLosses, a_peer_stops_receivers_of_its_own_only) {
  QueryCluster cluster(3);
  const auto [id, query] = cluster.begin_at(0);
  for (const int32_t receiver : {2, 4, 6, -1})  // 2 is of node 1, 6 and -1 are of none
    cluster[0].on_message(1, stop_of(id, 7, receiver));
  EXPECT_EQ(cluster[0].stops(*query, 7), std::vector<uint32_t>{2});
}

TEST(QueryLosses, a_peer_that_leaves_after_the_outcome_is_no_loss) {
  QueryCluster cluster(2);
  const auto [id, at] = cluster.begin_everywhere();
  cluster.end_everywhere(at);
  cluster.deliver(1, 0);
  ASSERT_TRUE(at[0]->outcome_known());
  cluster[0].on_peer_lost(1, kLost);  // before its CONFIRM
  EXPECT_FALSE(at[0]->failed());
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

// Node 2 has the outcome and leaves; node 1 hears that before it hears the outcome, for these come
// on different connections.
TEST(QueryLosses, a_participant_that_leaves_after_its_end_does_not_fail_the_others) {
  QueryCluster cluster(3);
  const auto [id, queries] = cluster.begin_everywhere();
  cluster.end_everywhere(queries);
  cluster.deliver(1, 0);
  cluster.deliver(2, 0);
  cluster.deliver(0, 2);
  ASSERT_TRUE(queries[2]->outcome_known());
  cluster[1].on_peer_lost(2, Status(Code::peer_lost, "node 2 closed its session"));
  cluster.deliver(0, 1);
  EXPECT_TRUE(queries[1]->outcome_known());
  EXPECT_TRUE(test::is_ok(queries[1]->cause()));
}

}  // namespace
}  // namespace faro::shuffle
