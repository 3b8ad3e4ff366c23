// Who may say what about which query: what a peer tells that is not so, too much, or not its business.
#include <gtest/gtest.h>

#include <vector>

#include "unit/query_cluster.h"

namespace faro::shuffle {
namespace {

// Ids that the others have never heard of, as a hostile node makes them up.
QueryId made_up(uint32_t issuer, uint64_t number) {
  return {1'000'000 + 7 * number, 1000 + issuer, issuer, 0};
}

TEST(QueryUnverified, a_peer_that_makes_up_queries_makes_this_node_forget_its_own_oldest_ones) {
  QueryCluster cluster(3);
  QueryMessage stop = stop_of({}, 0, 2);  // a worker of node 1
  ASSERT_NE(cluster[0].hear(made_up(2, 1), 2), nullptr);
  uint64_t said = 0;
  for (; said < 100'000; ++said) {
    if (said % 2 == 0) {
      ASSERT_NE(cluster[0].hear(made_up(1 + said % 4 / 2, said + 2), 1), nullptr);
    } else {
      stop.query = to_key(made_up(1 + said % 4 / 2, said + 2));
      cluster[0].on_message(1, stop);
    }
    ASSERT_LE(cluster[0].running_count(), 16384u + 1);
  }
  EXPECT_TRUE(cluster.nodes[0].offenders.empty()) << "an honest node could have said all that";
  // The latest are kept, and what others said.
  EXPECT_NE(cluster[0].find(made_up(1 + (said - 1) % 4 / 2, said + 1)), nullptr);
  EXPECT_EQ(cluster[0].find(made_up(1, 2)), nullptr);
  EXPECT_NE(cluster[0].find(made_up(2, 1)), nullptr);
  EXPECT_TRUE(cluster[0].use(cluster[0].begin()).ok());
  // And what was made up expires.
  cluster[0].on_tick(kUnopened);
  EXPECT_EQ(cluster[0].running_count(), 1u);
}

TEST(QueryUnverified, more_stops_than_the_quota_of_one_query_that_nobody_knows_are_not_kept) {
  QueryCluster cluster(2);
  QueryMessage stop = stop_of(made_up(1, 1), 0, 2);
  for (stop.first = 0; stop.first < 40'000; ++stop.first) cluster[0].on_message(1, stop);
  EXPECT_TRUE(cluster.nodes[0].offenders.empty());
  const auto query = cluster.use(0, made_up(1, 1));
  EXPECT_EQ(cluster[0].stops(*query, 16382).size(), 1u);
  EXPECT_EQ(cluster[0].stops(*query, 16383).size(), 0u);
  // A query that is used has its own limit, and the quota is free again.
  for (uint64_t number = 2; number < 10; ++number)
    EXPECT_NE(cluster[0].hear(made_up(1, number), 1), nullptr);
  EXPECT_NE(cluster[0].find(made_up(1, 2)), nullptr);
}

TEST(QueryUnverified, a_peer_that_starts_again_has_its_whole_quota) {
  QueryCluster cluster(3);
  QueryMessage stop = stop_of(made_up(2, 1), 0, 2);  // a worker of node 1
  for (const int life : {0, 1}) {
    for (stop.first = 0; stop.first < 10'000; ++stop.first) cluster[0].on_message(1, stop);
    if (life > 0) break;
    cluster[0].on_peer_lost(1, kLost);
    cluster[0].on_peer_joined(1, 2000);
  }
  const auto query = cluster.use(0, made_up(2, 1));
  EXPECT_EQ(cluster[0].stops(*query, 9'999).size(), 1u);
}

TEST(QueryUnverified, a_query_whose_rows_wait_makes_no_room_for_others) {
  QueryCluster cluster(2);
  const auto waited_for = cluster[0].hear(made_up(1, 1), 1);
  ASSERT_NE(waited_for, nullptr);
  cluster[0].add_unopened(*waited_for, 0, 7, 2, 0);
  for (uint64_t number = 2; number < 20'000; ++number)
    ASSERT_NE(cluster[0].hear(made_up(1, number), 1), nullptr);
  EXPECT_EQ(cluster[0].find(made_up(1, 2)), nullptr);
  EXPECT_EQ(cluster[0].find(made_up(1, 1)), waited_for);
}

// Begun, cancelled and ended at its issuer; the plan never reaches the other node.
TEST(QueryUnverified, any_number_of_queries_that_this_node_never_uses_is_forgotten_when_they_fail) {
  QueryCluster cluster(2);
  for (int i = 0; i < 70'000; ++i) {
    const QueryId id = cluster[0].begin();
    const auto query = test::value_of(cluster[0].use(id));
    cluster[0].fail(*query, kCancelled);
    cluster.end(0, *query);
    for (int round = 0; round < 3; ++round) {
      cluster.deliver(0, 1);
      cluster.deliver(1, 0);
    }
    ASSERT_LE(cluster[1].running_count(), 16384u) << i;
    ASSERT_EQ(cluster[0].running_count(), 0u) << i << ": its issuer waits for nobody";
    ASSERT_TRUE(cluster.nodes[1].offenders.empty()) << i;
    if (i == 0) {
      const auto late = cluster.use(1, id);
      EXPECT_EQ(late->cause().message(), kCancelled.message()) << "the plan was late";
      cluster.end(1, *late);
      EXPECT_EQ(cluster[1].use(id).status().code(), Code::query_ended);
    }
  }
  cluster[1].on_tick(kUnopened);
  EXPECT_EQ(cluster[1].running_count(), 0u);
}

TEST(QueryUnverified, a_peer_that_takes_no_part_fails_nothing) {
  for (const auto kind : {QueryMessageKind::fail, QueryMessageKind::ended}) {
    for (const bool early : {false, true}) {
      QueryCluster cluster(3);
      const QueryId id = cluster[0].begin();
      QueryMessage lie = message_of(kind, id, Code::query_failed);
      if (early) {
        for (const uint32_t n : {0u, 2u}) cluster[n].on_message(1, lie);
      }
      for (const uint32_t n : {0u, 2u}) ASSERT_TRUE(cluster[n].declare(id, {0, 1, 4, 5}).ok());
      const auto a = cluster.use(0, id);
      const auto c = cluster.use(2, id);
      for (const uint32_t n : {0u, 2u}) cluster[n].on_message(1, lie);
      cluster.deliver_all();
      EXPECT_FALSE(a->failed()) << "early: " << early;
      EXPECT_FALSE(c->failed()) << "early: " << early;
      cluster.end(0, *a);
      cluster.end(2, *c);
      cluster.deliver_all();
      EXPECT_TRUE(a->outcome_known() && a->outcome().ok());
      EXPECT_TRUE(c->outcome_known() && c->outcome().ok());
      EXPECT_EQ(cluster[0].running_count() + cluster[2].running_count(), 0u);
    }
  }
}

TEST(QueryUnverified, a_failure_that_comes_before_the_declaration_counts_if_its_node_takes_part) {
  QueryCluster cluster(3);
  const QueryId id = cluster[0].begin();
  QueryMessage fail = message_of(QueryMessageKind::fail, id, Code::query_cancelled, "enough");
  cluster[0].on_message(1, fail);
  cluster[2].on_message(1, fail);
  ASSERT_EQ(cluster[2].running_count(), 0u) << "the issuer will pass it on";
  for (const uint32_t n : {0u, 2u}) ASSERT_TRUE(cluster[n].declare(id, {0, 2, 4}).ok());
  cluster.deliver_all();
  for (const uint32_t n : {0u, 2u}) {
    EXPECT_TRUE(cluster.use(n, id)->failed()) << n;
    EXPECT_EQ(cluster.use(n, id)->cause().message(), "enough") << n;
  }
}

TEST(QueryUnverified, a_query_that_failed_before_its_declaration_tells_its_cause_to_every_worker) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(0);
  cluster[0].fail(*query, kCancelled);
  for (const uint32_t worker : {0u, 1u}) cluster[0].end(*query, worker);
  cluster.deliver(0, 1);  // FAIL, answered by ENDED: node 1 does not use it yet
  ASSERT_TRUE(cluster[1].declare(id, {0, 1, 2, 3}).ok());
  cluster.deliver_all();  // and with that the outcome, before a worker of node 1 has used it
  for (const uint32_t worker : {2u, 3u}) {
    const auto late = cluster.use(1, id);
    ASSERT_TRUE(late != nullptr && late->failed()) << worker;
    EXPECT_EQ(late->cause().message(), kCancelled.message());
    cluster[1].end(*late, worker);
  }
  EXPECT_EQ(cluster[0].running_count() + cluster[1].running_count(), 0u);
}

TEST(QueryUnverified, a_node_that_declares_a_query_of_others_forgets_it_when_it_has_failed) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(0);
  cluster[0].fail(*query, kCancelled);
  cluster.deliver(0, 1);
  ASSERT_TRUE(cluster[1].declare(id, {0, 1}).ok());  // it has no worker in it that could end it
  cluster.end(0, *query);
  cluster.deliver_all();
  EXPECT_EQ(cluster[0].running_count() + cluster[1].running_count(), 0u);
}

// The engine's part ends nevertheless, by the worker that has one.
TEST(QueryUnverified, that_is_over_when_it_is_declared_is_forgotten_when_its_workers_have_ended) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(0);
  cluster[0].fail(*query, kCancelled);
  cluster.end(0, *query);
  cluster.deliver_all();
  cluster[1].on_peer_lost(0, Status(Code::peer_lost, "node 0 is lost"));
  EXPECT_EQ(cluster[1].declare(id, {0, 2}).code(), Code::query_cancelled);
  const auto late = test::value_of(cluster[1].use(id));
  cluster[1].end(*late, 2);
  EXPECT_TRUE(late->outcome_known());
  EXPECT_EQ(cluster[1].find(id), nullptr);
}

TEST(QueryUnverified, a_cancel_that_crosses_the_outcome_changes_it_nowhere) {
  for (const uint32_t late : {1u, 2u}) {
    QueryCluster cluster(3);
    const auto [id, queries] = cluster.begin_everywhere();
    cluster.end_everywhere(queries);
    cluster.deliver(1, 0);
    cluster.deliver(2, 0);
    ASSERT_TRUE(queries[0]->outcome_known());  // `done`, and under way
    cluster[late].fail(*queries[late], kCancelled);
    cluster.deliver(late, 3 - late);
    cluster.deliver_all();
    for (uint32_t n = 0; n < 3; ++n) {
      EXPECT_TRUE(queries[n]->outcome_known()) << n;
      EXPECT_TRUE(queries[n]->outcome().ok()) << n;
      EXPECT_FALSE(queries[n]->failed()) << n;
    }
  }
}

TEST(QueryUnverified, a_cancel_after_the_own_end_is_the_outcome_if_the_issuer_has_not_decided) {
  QueryCluster cluster(3);
  const auto [id, queries] = cluster.begin_everywhere();
  for (const uint32_t n : {0u, 1u}) cluster.end(n, *queries[n]);
  cluster[1].fail(*queries[1], kCancelled);
  cluster[1].fail(*queries[1], kCancelled);
  EXPECT_EQ(cluster.wires[1][0].size(), 2u) << "ENDED, and once the question";
  EXPECT_TRUE(cluster.wires[1][2].empty()) << "the issuer decides";
  cluster.deliver_all();
  EXPECT_TRUE(queries[2]->failed());
  cluster.end(2, *queries[2]);
  cluster.deliver_all();
  for (uint32_t n = 0; n < 3; ++n) {
    ASSERT_TRUE(queries[n]->outcome_known()) << n;
    EXPECT_EQ(queries[n]->outcome().code(), Code::query_cancelled) << n;
  }
}

TEST(QueryUnverified, an_issuer_that_does_not_answer_keeps_nobody_from_cancelling) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(1);
  cluster.end(1, *query);
  cluster[1].fail(*query, kCancelled);
  cluster[1].on_tick(kUnopened - 1);
  EXPECT_FALSE(query->failed());
  cluster[1].on_tick(kUnopened);
  EXPECT_TRUE(query->failed());
  EXPECT_EQ(query->cause().message(), "enough");
  // It was only slow, and has read what came first.
  cluster[1].on_message(0, message_of(QueryMessageKind::outcome, id));
  EXPECT_TRUE(cluster.nodes[1].offenders.empty());
  EXPECT_TRUE(query->outcome_known());
  EXPECT_EQ(cluster[1].running_count(), 0u);
}

TEST(QueryUnverified, a_cancel_by_a_node_that_takes_no_part_is_forgotten_there) {
  for (const bool early : {false, true}) {
    QueryCluster cluster(3);
    const QueryId id = cluster[0].begin();
    if (early) {
      (void)cluster[1].cancel(id, kCancelled);
      cluster.deliver_all();
    }
    for (const uint32_t n : {0u, 2u}) ASSERT_TRUE(cluster[n].declare(id, {0, 4}).ok());
    if (!early) (void)cluster[1].cancel(id, kCancelled);
    cluster.deliver_all();
    EXPECT_EQ(cluster[1].running_count(), 0u) << "early: " << early;
    const auto a = cluster.use(0, id);
    const auto c = cluster.use(2, id);
    EXPECT_FALSE(a->failed() || c->failed());
    cluster.end(0, *a);
    cluster.end(2, *c);
    cluster.deliver_all();
    EXPECT_TRUE(a->outcome_known() && a->outcome().ok());
    EXPECT_TRUE(c->outcome_known() && c->outcome().ok());
  }
}

TEST(QueryUnverified,
     an_issuer_that_says_done_of_what_has_not_ended_well_here_breaks_the_protocol) {
  for (const bool failed : {false, true}) {
    QueryCluster cluster(2);
    const auto [id, query] = cluster.begin_at(1);
    if (failed) {
      cluster[1].fail(*query, kCancelled);
      cluster.end(1, *query);
    }
    cluster[1].on_message(0, message_of(QueryMessageKind::outcome, id));
    EXPECT_FALSE(query->outcome_known());
    ASSERT_EQ(cluster.nodes[1].offenders.size(), 1u);
    EXPECT_EQ(cluster.nodes[1].offenders[0].first, 0u);
    test::expect_contains(cluster.nodes[1].offenders[0].second.message(),
                          failed ? "failed" : "not ended");
  }
}

TEST(QueryUnverified, rows_of_a_peer_that_takes_no_part_end_its_link_and_no_query) {
  QueryCluster cluster(3);
  const QueryId id = cluster[0].begin();
  // Before it is declared here nobody knows better.
  const auto early = cluster[2].hear(id, 1);
  ASSERT_NE(early, nullptr);
  cluster[2].add_unopened(*early, 4, 99, 2, 0);
  ASSERT_TRUE(cluster[2].declare(id, {0, 1, 4, 5}).ok());
  const auto query = cluster.use(2, id);
  EXPECT_EQ(early, query);
  cluster[2].on_tick(kUnopened);
  ASSERT_EQ(cluster.nodes[2].offenders.size(), 1u) << "rows that nobody opened";
  EXPECT_EQ(cluster[2].hear(id, 1), nullptr);
  ASSERT_EQ(cluster.nodes[2].offenders.size(), 2u);
  for (const auto& [node, cause] : cluster.nodes[2].offenders) {
    EXPECT_EQ(node, 1u);
    EXPECT_EQ(cause.code(), Code::protocol_error);
  }
  EXPECT_NE(cluster[2].hear(id, 0), nullptr);
  EXPECT_FALSE(query->failed());
}

TEST(QueryUnverified, what_a_peer_spoils_before_a_query_is_used_here_counts_if_it_takes_part) {
  for (const bool takes_part : {false, true}) {
    QueryCluster cluster(3);
    const QueryId id = cluster[0].begin();
    const auto heard = cluster[2].hear(id, 1);
    cluster[2].fail_by_sender(*heard, 1, Status(Code::limit_exceeded, "too many"));
    ASSERT_EQ(cluster.wires[2][1].size(), 1u)
        << "whoever takes part ends the query when it is told";
    EXPECT_TRUE(cluster.wires[2][0].empty()) << "an issuer would believe it";
    ASSERT_TRUE(
        cluster[2].declare(id, takes_part ? std::vector{0u, 2u, 4u} : std::vector{0u, 4u}).ok());
    EXPECT_EQ(cluster.use(2, id)->failed(), takes_part);
  }
}

TEST(QueryUnverified, a_failure_told_by_the_issuer_is_kept_while_the_issuer_says_so) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(0);
  cluster[0].fail(*query, kCancelled);
  cluster.deliver_all();
  base::Nanoseconds now = 0;
  for (int i = 0; i < 10; ++i) {
    cluster[1].on_tick(now += kUnopened);
    cluster.deliver_all();
    ASSERT_EQ(cluster[1].running_count(), 1u) << i;
  }
  EXPECT_TRUE(cluster.use(1, id)->failed());

  // One that the issuer made up, and knows nothing of when it is asked.
  QueryMessage fail = message_of(QueryMessageKind::fail, made_up(0, 1), Code::query_failed);
  cluster[1].on_message(0, fail);
  ASSERT_EQ(cluster[1].running_count(), 2u);
  cluster[1].on_tick(now += kUnopened);
  cluster.deliver_all();
  cluster[1].on_tick(now += kUnopened);
  EXPECT_EQ(cluster[1].running_count(), 1u);
  // One that does not answer.
  fail.query = to_key(made_up(0, 2));
  cluster[1].on_message(0, fail);
  cluster[1].on_tick(now += kUnopened);
  ASSERT_EQ(cluster[1].running_count(), 2u);
  cluster[1].on_tick(now += kUnopened);
  EXPECT_EQ(cluster[1].running_count(), 1u);
}

// Whoever cancels it does not use it.
TEST(QueryUnverified, a_query_that_has_failed_keeps_its_cause_when_it_is_cancelled) {
  QueryCluster cluster(2);
  const auto [id, issuers] = cluster.begin_at(0);
  cluster[0].fail(*issuers, kLost);
  cluster.end(0, *issuers);
  cluster.deliver(0, 1);  // FAIL
  EXPECT_TRUE(test::is_ok(cluster[1].cancel(id, kCancelled)));
  cluster.deliver_all();  // its vote, and OUTCOME
  const auto late = cluster.use(1, id);
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->cause().message(), kLost.message());
  cluster.end(1, *late);
  EXPECT_EQ(cluster[1].running_count(), 0u);
}

}  // namespace
}  // namespace faro::shuffle
