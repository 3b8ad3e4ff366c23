// The life of queries on several nodes, messages fed by hand: in any order, twice, too early, too late.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "counters/counter_view.h"
#include "unit/query_cluster.h"

namespace faro::shuffle {
namespace {

TEST(QueryTable, ends_well_when_every_worker_has_ended) {
  QueryCluster cluster(3);
  const auto [id, queries] = cluster.begin_everywhere();
  for (uint32_t n = 0; n < 3; ++n) {
    cluster[n].end(*queries[n], 2 * n);
    cluster.deliver_all();
    EXPECT_FALSE(queries[0]->outcome_known()) << "a worker of node " << n << " has not ended";
    cluster[n].end(*queries[n], 2 * n + 1);
  }
  cluster.deliver_all();
  for (uint32_t n = 0; n < 3; ++n) {
    EXPECT_TRUE(queries[n]->outcome_known()) << n;
    EXPECT_TRUE(queries[n]->cause().ok()) << n;
    EXPECT_EQ(cluster[n].running_count(), 0u) << "node " << n << " still remembers it";
    EXPECT_EQ(cluster[n].use(id).status().code(), Code::query_ended);
    EXPECT_EQ(cluster[n].find(id), nullptr);
  }
}

/// What the counter file of a node shows.
class ShownQueries {
 public:
  explicit ShownQueries(QueryTable& table) {
    counters::Shape shape;
    shape.workers_per_node = {2, 2};
    shape.rings_per_lane = 1;
    file_ = std::move(*counters::CounterFile::make(shape, "", 1));
    table.show_in(*file_, clock_.now_ns());
  }
  counters::NodeView look() const {
    return (*counters::CounterView::over(file_->memory()))->read();
  }

 private:
  base::ManualClock clock_;
  std::unique_ptr<counters::CounterFile> file_;
};

TEST(QueryTable, shows_who_has_not_ended_and_nothing_of_what_is_over) {
  QueryCluster cluster(2);
  const ShownQueries shown(cluster[0]);
  const auto [id, at] = cluster.begin_everywhere();
  cluster[0].add_unopened(*at[0], 1, 7, 2, 0);
  cluster[0].end(*at[0], 0);
  counters::NodeView node = shown.look();
  ASSERT_EQ(node.queries.size(), 1u);
  EXPECT_EQ(node.queries[0].id, id);
  EXPECT_EQ(node.queries[0].life, counters::QueryLife::running);
  EXPECT_EQ(node.queries[0].workers_pending, 1u);
  EXPECT_EQ(node.queries[0].first_worker_pending, 1u);
  EXPECT_EQ(node.queries[0].unopened_worker, 1u);
  EXPECT_EQ(node.queries[0].unopened_stage, 7u);
  cluster[0].remove_unopened(*at[0], 1, 7);
  cluster[0].end(*at[0], 1);
  node = shown.look();
  EXPECT_EQ(node.queries[0].unopened_worker, counters::kAnyPeer);
  EXPECT_EQ(node.queries[0].nodes_pending, 1u) << "this node is the issuer, and waits for node 1";
  EXPECT_EQ(node.queries[0].first_node_pending, 1u);
  cluster.end(1, *at[1]);
  cluster.deliver_all();
  cluster[0].remove_unopened(*at[0], 1, 7);  // a worker that still has the query
  node = shown.look();
  EXPECT_TRUE(node.queries.empty());
  EXPECT_EQ(node.counters.queries_running, 0u);
}

TEST(QueryTable, shows_as_many_queries_as_there_is_room_for_and_counts_them_all) {
  QueryCluster cluster(2);
  const ShownQueries shown(cluster[0]);
  std::vector<std::shared_ptr<Query>> queries;
  for (uint32_t i = 0; i < counters::kQuerySlots + 3; ++i)
    queries.push_back(cluster.use(0, cluster[0].begin()));
  EXPECT_EQ(shown.look().queries.size(), counters::kQuerySlots);
  EXPECT_EQ(shown.look().counters.queries_running, counters::kQuerySlots + 3);
  for (const auto& query : queries) {
    cluster[0].fail(*query, kCancelled);
    cluster.end(0, *query);
  }
  EXPECT_EQ(shown.look().counters.queries_failed, counters::kQuerySlots + 3);
  cluster[0].on_peer_lost(1, kLost);
  EXPECT_TRUE(shown.look().queries.empty());
  (void)cluster.begin_at(0);
  EXPECT_EQ(shown.look().queries.size(), 1u) << "the room is free again";
}

TEST(QueryTable, ending_twice_is_ending_once) {
  QueryCluster cluster(2);
  const auto [id, at] = cluster.begin_everywhere();
  for (int i = 0; i < 3; ++i) cluster[1].end(*at[1], 2);
  cluster.deliver_all();
  cluster.end(0, *at[0]);
  cluster.deliver_all();
  EXPECT_FALSE(at[0]->outcome_known()) << "worker 3 has not ended";
  cluster[1].end(*at[1], 3);
  cluster.deliver_all();
  EXPECT_TRUE(at[0]->outcome_known() && at[1]->outcome_known());
}

TEST(QueryTable, a_failure_reaches_every_participant_and_is_the_outcome) {
  for (const uint32_t failing : {0u, 1u, 2u}) {
    QueryCluster cluster(3);
    const auto [id, queries] = cluster.begin_everywhere(1);
    cluster[failing].fail(*queries[failing], kCancelled);
    cluster[failing].fail(*queries[failing], Status(Code::query_failed, "a second cause"));
    cluster.deliver_all();
    for (uint32_t n = 0; n < 3; ++n) {
      EXPECT_TRUE(queries[n]->failed());
      EXPECT_EQ(queries[n]->cause().code(), Code::query_cancelled);
      EXPECT_EQ(queries[n]->cause().message(), "enough") << "the first cause counts";
      EXPECT_EQ(cluster[n].failed_count(), 1u);
      cluster.end(n, *queries[n]);
    }
    cluster.deliver_all();
    for (uint32_t n = 0; n < 3; ++n) {
      EXPECT_TRUE(queries[n]->outcome_known());
      EXPECT_EQ(cluster[n].running_count(), 0u);
    }
  }
}

TEST(QueryTable, a_failure_that_only_comes_with_the_end_is_the_outcome) {
  // The FAIL of node 1 to node 2 is slow; the issuer learns it with ENDED.
  QueryCluster cluster(3);
  const auto [id, queries] = cluster.begin_everywhere();
  cluster[1].fail(*queries[1], kCancelled);
  cluster.wires[1][0].clear();
  cluster.wires[1][2].clear();
  cluster.end_everywhere(queries);
  cluster.deliver_all();
  for (uint32_t n = 0; n < 3; ++n) {
    EXPECT_TRUE(queries[n]->outcome_known());
    EXPECT_EQ(queries[n]->cause().code(), Code::query_cancelled) << "node " << n;
  }
}

TEST(QueryTable, cancel_and_stop_of_a_query_not_known_yet_are_remembered) {
  QueryCluster cluster(2);
  const auto [id, a] = cluster.begin_at(0);
  const uint32_t senders[] = {2, 3};
  cluster[0].stop(*a, 4, 1, senders);
  cluster.deliver_all();
  const auto b = cluster.use(1, id);
  EXPECT_EQ(cluster[1].stops(*b, 4), std::vector<uint32_t>{1});
  EXPECT_TRUE(cluster[1].stops(*b, 5).empty());
  EXPECT_TRUE(cluster[0].stops(*a, 4).empty()) << "no sender there";

  const QueryId other = cluster[0].begin();
  (void)cluster[0].cancel(other, kCancelled);
  cluster.deliver_all();
  const auto late = cluster.use(1, other);
  EXPECT_TRUE(late->failed());
  EXPECT_EQ(late->cause().code(), Code::query_cancelled);
}

TEST(QueryTable, a_query_that_is_cancelled_and_over_before_its_workers_come_tells_them_why) {
  QueryCluster cluster(2);
  const auto cancel = [&] {
    const QueryId id = cluster[0].begin();
    EXPECT_TRUE(test::is_ok(cluster[1].cancel(id, kCancelled)));
    cluster[1].on_message(
        0, message_of(QueryMessageKind::outcome, id, Code::query_cancelled, "enough"));
    EXPECT_EQ(cluster[1].running_count(), 0u) << "only the cause is kept";
    return id;
  };
  const auto expect_told = [&](const QueryId& id) {
    test::expect_error(cluster[1].use(id).status(), Code::query_cancelled, {"enough"});
  };
  const QueryId oldest = cancel();
  expect_told(oldest);
  QueryId latest;
  for (size_t i = 0; i < EndedQueries::kFailureLimit; ++i) latest = cancel();
  test::expect_error(cluster[1].use(oldest).status(), Code::query_ended, {});
  expect_told(latest);

  // This node need not know how the queries of an issuer that is lost have ended.
  const QueryId lost = cluster[0].begin();
  EXPECT_TRUE(test::is_ok(cluster[1].cancel(lost, kCancelled)));
  cluster[1].on_peer_lost(0, kLost);
  test::expect_error(cluster[1].use(lost).status(), Code::peer_lost, {});
}

TEST(QueryTable, ends_although_a_node_cancels_it_and_no_plan_ever_reaches_that_node) {
  QueryCluster cluster(3);
  const auto [id, first] = cluster.begin_at(0);
  const auto second = cluster.use(1, id);
  EXPECT_TRUE(test::is_ok(cluster[2].cancel(id, kCancelled)));
  cluster.deliver_all();
  for (uint32_t worker = 0; worker < 4; ++worker) {
    cluster[worker / 2].end(worker < 2 ? *first : *second, worker);
  }
  cluster.deliver_all();
  for (const auto& query : {first, second}) {
    EXPECT_TRUE(query->outcome_known());
    EXPECT_EQ(query->cause().code(), Code::query_cancelled);
  }
  for (uint32_t n = 0; n < 3; ++n) EXPECT_EQ(cluster[n].running_count(), 0u) << "node " << n;
}

TEST(QueryTable, a_stop_that_is_repeated_is_kept_once) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(0);
  QueryMessage stop = stop_of(id, 3, 2);
  for (int i = 0; i < 1000; ++i) cluster[0].on_message(1, stop);
  EXPECT_EQ(cluster[0].stops(*query, 3).size(), 1u);
}

TEST(QueryTable, ids_that_cannot_be_are_refused) {
  QueryCluster cluster(2);
  EXPECT_FALSE(cluster[0].use({0, 1000, 0, 0}).ok()) << "no counter";
  EXPECT_FALSE(cluster[0].use({1, 1000, 0, 0}).ok()) << "never begun";
  EXPECT_FALSE(cluster[0].use({1, 999, 1, 0}).ok()) << "another incarnation";
  EXPECT_FALSE(cluster[0].use({1, 1000, 7, 0}).ok()) << "no such node";
  EXPECT_TRUE(cluster[0].use({1, 1001, 1, 0}).ok())
      << "begun by node 1, for all that is known here";
  // Messages about them are dropped.
  for (const auto kind : {QueryMessageKind::fail, QueryMessageKind::stop, QueryMessageKind::ended,
                          QueryMessageKind::outcome, QueryMessageKind::confirm}) {
    for (const QueryId& id : {QueryId{0, 1000, 0, 0}, QueryId{9, 1000, 0, 0}, QueryId{1, 5, 1, 0},
                              QueryId{1, 1000, 70'000, 0}})
      cluster[0].on_message(1, message_of(kind, id));
  }
  EXPECT_EQ(cluster[0].running_count(), 1u);
}

TEST(QueryTable, only_the_issuer_decides) {
  QueryCluster cluster(3);
  const auto [id, query] = cluster.begin_at(2);
  QueryMessage outcome = message_of(QueryMessageKind::outcome, id);
  outcome.number = UINT64_MAX;
  cluster[2].on_message(1, outcome);
  EXPECT_FALSE(query->outcome_known());
  cluster[2].on_message(2, outcome);
  EXPECT_FALSE(query->outcome_known());
  EXPECT_TRUE(cluster[2].use(id).ok());
}

TEST(QueryTable, an_outcome_comes_early_or_twice) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(1);
  QueryMessage outcome = message_of(QueryMessageKind::outcome, id, Code::query_failed, "elsewhere");
  cluster[1].on_message(0, outcome);
  cluster[1].on_message(0, outcome);
  EXPECT_TRUE(query->outcome_known());
  EXPECT_TRUE(query->failed());
  EXPECT_EQ(query->cause().message(), "elsewhere");
  EXPECT_EQ(cluster[1].failed_count(), 1u);
  EXPECT_EQ(cluster.wires[1][0].size(), 2u) << "each is confirmed";
  EXPECT_EQ(cluster[1].running_count(), 1u) << "its workers have not asked";
  cluster.end(1, *query);
  EXPECT_EQ(cluster[1].running_count(), 0u);
}

TEST(QueryTable, an_unknown_code_from_a_peer_is_a_failed_query) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(0);
  QueryMessage fail = message_of(QueryMessageKind::fail, id);
  fail.second = 12345;
  fail.text = "of a later version";
  cluster[0].on_message(1, fail);
  EXPECT_EQ(query->cause().code(), Code::query_failed);
  EXPECT_EQ(query->cause().message(), "of a later version");

  const auto [other, no_cause] = cluster.begin_at(0);
  cluster[0].on_message(1, message_of(QueryMessageKind::fail, other));
  EXPECT_EQ(no_cause->cause().code(), Code::query_failed) << "a failure without a code";
}

TEST(QueryTable, a_confirmation_that_never_comes_keeps_the_issuer_remembering) {
  QueryCluster cluster(2);
  const auto [id, at] = cluster.begin_everywhere();
  cluster.end_everywhere(at);
  cluster.deliver(1, 0);
  cluster.deliver(0, 1);
  EXPECT_TRUE(at[0]->outcome_known() && at[1]->outcome_known());
  EXPECT_EQ(cluster[1].running_count(), 0u);
  EXPECT_EQ(cluster[0].running_count(), 1u);
  EXPECT_TRUE(cluster[0].use(id).ok()) << "not an error: it is still known";
  cluster[0].on_message(1, message_of(QueryMessageKind::confirm, id));
  cluster[0].on_message(1, message_of(QueryMessageKind::confirm, id));
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

TEST(QueryTable, a_confirmation_before_the_outcome_means_nothing) {
  QueryCluster cluster(2);
  const auto [id, a] = cluster.begin_at(0);
  cluster[0].on_message(1, message_of(QueryMessageKind::confirm, id));
  cluster.end(0, *a);
  EXPECT_FALSE(a->outcome_known()) << "node 1 has not ended";
}

// A peer may do harm to its own words: the decision comes as something else, and is never confirmed.
TEST(QueryTable, who_cancels_for_want_of_the_decision_is_told_it_again) {
  QueryCluster cluster(2);
  const auto [id, queries] = cluster.begin_everywhere();
  cluster.end_everywhere(queries);
  cluster.deliver(1, 0);
  EXPECT_TRUE(queries[0]->outcome_known());
  cluster.wires[0][1].clear();
  EXPECT_TRUE(test::is_ok(cluster[1].cancel(id, kCancelled)));
  cluster.deliver(1, 0);
  cluster.deliver(0, 1);
  ASSERT_TRUE(queries[1]->outcome_known());
  EXPECT_TRUE(test::is_ok(queries[1]->outcome()));
  cluster.deliver(1, 0);
  for (const uint32_t n : {0u, 1u}) EXPECT_EQ(cluster[n].running_count(), 0u);
}

TEST(QueryTable, who_asks_again_after_the_end_is_answered) {
  QueryCluster cluster(2);
  const auto [id, at] = cluster.begin_everywhere();
  cluster.end_everywhere(at);
  cluster.deliver_all();
  ASSERT_EQ(cluster[0].running_count(), 0u);
  cluster[0].on_message(1, message_of(QueryMessageKind::ended, id));
  ASSERT_EQ(cluster.wires[0][1].size(), 1u);
  EXPECT_EQ(cluster.wires[0][1].front().kind, QueryMessageKind::outcome);
}

TEST(QueryTable, low_water_marks_forget_many_ended_queries_and_no_others) {
  QueryCluster cluster(2);
  std::vector<QueryId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(cluster[0].begin());
  // All but the second end, the last first.
  for (const int i : {4, 3, 2, 0}) {
    const auto a = cluster.use(0, ids[i]);
    const auto b = cluster.use(1, ids[i]);
    cluster.end(0, *a);
    cluster.end(1, *b);
    cluster.deliver_all();
  }
  for (const int i : {0, 2, 3, 4}) {
    EXPECT_EQ(cluster[0].use(ids[i]).status().code(), Code::query_ended) << i;
    EXPECT_EQ(cluster[1].use(ids[i]).status().code(), Code::query_ended) << i;
  }
  EXPECT_TRUE(cluster[0].use(ids[1]).ok());
  EXPECT_TRUE(cluster[1].use(ids[1]).ok());
}

TEST(QueryTable, a_low_water_mark_cannot_be_raised_beyond_its_query) {
  QueryCluster cluster(2);
  const QueryId first = cluster[0].begin();
  const QueryId second = cluster[0].begin();
  QueryMessage outcome = message_of(QueryMessageKind::outcome, first);
  outcome.number = UINT64_MAX;
  cluster[1].on_message(0, outcome);
  EXPECT_FALSE(cluster[1].use(first).ok());
  EXPECT_TRUE(cluster[1].use(second).ok()) << "it has not ended";
}

TEST(QueryTable, an_issuer_that_takes_no_part_decides_all_the_same) {
  QueryCluster cluster(2);
  const QueryId id = cluster[0].begin();
  // Node 1 is faster than the issuer's own declaration.
  ASSERT_TRUE(cluster[1].declare(id, {2, 3}).ok());
  const auto query = cluster.use(1, id);
  cluster.end(1, *query);
  cluster.deliver_all();
  EXPECT_FALSE(query->outcome_known());
  ASSERT_TRUE(cluster[0].declare(id, {2, 3}).ok());
  cluster.deliver_all();
  EXPECT_TRUE(query->outcome_known());
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

TEST(QueryTable, an_issuer_that_takes_no_part_is_believed) {
  QueryCluster cluster(3);
  const QueryId id = cluster[0].begin();
  for (const uint32_t n : {0u, 1u, 2u}) ASSERT_TRUE(cluster[n].declare(id, {2, 4}).ok());
  const auto b = cluster.use(1, id);
  const auto c = cluster.use(2, id);
  (void)cluster[0].cancel(id, kCancelled);
  cluster.deliver_all();
  EXPECT_TRUE(b->failed() && c->failed());
}

TEST(QueryTable, a_declaration_is_refused_when_it_is_late_or_names_nobody) {
  QueryCluster cluster(2);
  const QueryId id = cluster[0].begin();
  EXPECT_EQ(cluster[0].declare(id, {0, 4}).code(), Code::invalid_argument);
  ASSERT_TRUE(cluster[0].declare(id, {0}).ok());
  EXPECT_EQ(cluster[0].declare(id, {0}).code(), Code::wrong_state) << "twice";
  const QueryId used = cluster[0].begin();
  cluster.use(0, used);
  EXPECT_EQ(cluster[0].declare(used, {0}).code(), Code::wrong_state);
  EXPECT_EQ(cluster[0].declare({99, 1000, 0, 0}, {0}).code(), Code::query_ended);
}

TEST(QueryTable, rows_that_nobody_opens_fail_their_query_in_time) {
  QueryCluster cluster(2);
  const auto [id, query] = cluster.begin_at(0);
  cluster[0].add_unopened(*query, 1, 3, 2, 5'000'000'000);
  cluster[0].on_tick(5'000'000'000 + kUnopened - 1);
  EXPECT_FALSE(query->failed());
  cluster[0].on_tick(4'000'000'000);  // a clock of another thread may be a little behind
  EXPECT_FALSE(query->failed());
  cluster[0].on_tick(5'000'000'000 + kUnopened);
  EXPECT_TRUE(query->failed());
  test::expect_error(query->cause(), Code::query_unopened, {"query.unopened_timeout_ms = 1000"});
  cluster.deliver_all();
  EXPECT_TRUE(cluster.use(1, id)->failed());

  const auto [opened, in_time] = cluster.begin_at(0);
  cluster[0].add_unopened(*in_time, 1, 3, 2, 0);
  cluster[0].remove_unopened(*in_time, 1, 3);
  cluster[0].on_tick(10 * kUnopened);
  EXPECT_FALSE(in_time->failed());
}

TEST(QueryTable, closing_fails_everything_and_nothing_begins) {
  QueryCluster cluster(2);
  const auto [id, at] = cluster.begin_everywhere();
  cluster[0].close(Status(Code::peer_lost, "node 0 closed its session"));
  cluster[0].close(Status(Code::peer_lost, "again"));
  EXPECT_TRUE(at[0]->failed());
  cluster.deliver_all();
  EXPECT_TRUE(at[1]->failed());
  EXPECT_EQ(at[1]->cause().message(), "node 0 closed its session");
  EXPECT_FALSE(cluster[0].use(cluster[0].begin()).ok());
}

TEST(QueryTable, the_biggest_user_of_overflow_is_found_among_those_that_run) {
  QueryCluster cluster(1);
  EXPECT_EQ(cluster[0].biggest_overflow_user(), nullptr);
  const auto a = cluster.use(0, cluster[0].begin());
  const auto b = cluster.use(0, cluster[0].begin());
  a->usage.bytes = 10;
  b->usage.bytes = 20;
  EXPECT_EQ(cluster[0].biggest_overflow_user(), b);
  cluster[0].fail(*b, kCancelled);
  EXPECT_EQ(cluster[0].biggest_overflow_user(), a);
}

// Chance: any messages of any node in any order never break the tables, and once everybody has
// ended and everything has arrived, nothing is remembered.
TEST(QueryTable, survives_any_order_of_messages) {
  uint64_t state = 7;
  auto draw = [&state](uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  for (int run = 0; run < 300; ++run) {
    QueryCluster cluster(3);
    std::vector<std::pair<uint32_t, std::shared_ptr<Query>>> uses;
    std::vector<QueryId> ids;
    for (int step = 0; step < 200; ++step) {
      switch (draw(6)) {
        case 0:
          if (ids.size() < 4) ids.push_back(cluster[static_cast<uint32_t>(draw(3))].begin());
          break;
        case 1:
        case 2:
          if (!ids.empty()) {
            const auto node = static_cast<uint32_t>(draw(3));
            Result<std::shared_ptr<Query>> query = cluster[node].use(ids[draw(ids.size())]);
            if (query.ok()) uses.emplace_back(node, *query);
          }
          break;
        case 3:
          if (!uses.empty()) {
            const auto& [node, query] = uses[draw(uses.size())];
            if (draw(8) == 0) cluster[node].fail(*query, kCancelled);
            const uint32_t senders[] = {0, 2, 4};
            if (draw(4) == 0) cluster[node].stop(*query, 1, 2 * node, senders);
          }
          break;
        case 4:
          if (!uses.empty()) {
            const auto& [node, query] = uses[draw(uses.size())];
            cluster[node].end(*query, 2 * node + static_cast<uint32_t>(draw(2)));
          }
          break;
        case 5:
          cluster.deliver(static_cast<uint32_t>(draw(3)), static_cast<uint32_t>(draw(3)));
          break;
      }
    }
    for (const QueryId& id : ids) {
      for (uint32_t n = 0; n < 3; ++n) {
        Result<std::shared_ptr<Query>> query = cluster[n].use(id);
        if (query.ok()) uses.emplace_back(n, *query);
      }
    }
    for (const auto& [node, query] : uses) cluster.end(node, *query);
    cluster.deliver_all();
    for (uint32_t n = 0; n < 3; ++n) EXPECT_EQ(cluster[n].running_count(), 0u) << "run " << run;
    for (const auto& [node, query] : uses) EXPECT_TRUE(query->outcome_known()) << "run " << run;
  }
}

}  // namespace
}  // namespace faro::shuffle
