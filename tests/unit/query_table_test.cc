// The life of queries on several nodes, messages fed by hand: in any order, twice, too early, too late.
#include "shuffle/query.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "counters/counter_view.h"

namespace faro::shuffle {
namespace {

using wire::QueryMessage;
using wire::QueryMessageKind;

constexpr base::Nanoseconds kUnopened = 1'000'000'000;

/// Nodes with two workers each: worker w lives on node w / 2. Messages wait until they are delivered.
class Cluster {
 public:
  struct Node final : QueryEnvironment {
    void send(uint32_t node, const QueryMessage& message) override {
      cluster->wires[number][node].push_back(message);
    }
    void alert_workers() override { ++alerts; }
    void fail_peer(uint32_t node, const Status& cause) override {
      offenders.emplace_back(node, cause);
    }

    Cluster* cluster = nullptr;
    uint32_t number = 0;
    int alerts = 0;
    std::vector<std::pair<uint32_t, Status>> offenders;
    std::unique_ptr<QueryTable> table;
  };

  explicit Cluster(uint32_t count)
      : nodes(count), wires(count, std::vector<std::deque<QueryMessage>>(count)) {
    QueryTable::Shape shape;
    for (uint32_t n = 0; n < count; ++n) {
      shape.incarnations.push_back(1000 + n);
      shape.node_names.push_back("node " + std::to_string(n));
      shape.first_worker.push_back(2 * n);
      shape.worker_count.push_back(2);
    }
    for (uint32_t n = 0; n < count; ++n) {
      shape.node = n;
      nodes[n].cluster = this;
      nodes[n].number = n;
      nodes[n].table = std::make_unique<QueryTable>(shape, nodes[n], kUnopened);
    }
  }

  QueryTable& operator[](uint32_t node) { return *nodes[node].table; }

  /// Everything from one node to another.
  void deliver(uint32_t from, uint32_t to) {
    while (!wires[from][to].empty()) {
      const QueryMessage message = wires[from][to].front();
      wires[from][to].pop_front();
      // As it would come over a control connection.
      const auto decoded = wire::decode_query_message(wire::encode(message));
      ASSERT_TRUE(decoded.has_value());
      nodes[to].table->on_message(from, *decoded);
    }
  }
  void deliver_all() {
    for (int round = 0; round < 10; ++round) {
      for (uint32_t from = 0; from < nodes.size(); ++from) {
        for (uint32_t to = 0; to < nodes.size(); ++to) deliver(from, to);
      }
    }
  }

  std::shared_ptr<Query> use(uint32_t node, const QueryId& id) {
    Result<std::shared_ptr<Query>> query = (*this)[node].use(id);
    EXPECT_TRUE(query.ok()) << query.status().to_string();
    return query.ok() ? *query : nullptr;
  }
  /// Both workers of a node.
  void end(uint32_t node, Query& query) {
    (*this)[node].end(query, 2 * node);
    (*this)[node].end(query, 2 * node + 1);
  }

  std::vector<Node> nodes;
  std::vector<std::vector<std::deque<QueryMessage>>> wires;  // [from][to]
};

QueryMessage message_of(QueryMessageKind kind, const QueryId& id) {
  QueryMessage message;
  message.kind = kind;
  message.query = to_key(id);
  return message;
}

const Status kLost(Code::peer_lost, "node 1 (host:7): connection reset");
const Status kCancelled(Code::query_cancelled, "enough");

TEST(QueryTable, ends_well_when_every_worker_has_ended) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  std::vector<std::shared_ptr<Query>> queries;
  for (uint32_t n = 0; n < 3; ++n) queries.push_back(cluster.use(n, id));
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
  Cluster cluster(2);
  const ShownQueries shown(cluster[0]);
  const QueryId id = cluster[0].begin();
  const auto a = cluster.use(0, id);
  const auto b = cluster.use(1, id);
  cluster[0].add_unopened(*a, 1, 7, 2, 0);
  cluster[0].end(*a, 0);
  counters::NodeView node = shown.look();
  ASSERT_EQ(node.queries.size(), 1u);
  EXPECT_EQ(node.queries[0].id, id);
  EXPECT_EQ(node.queries[0].life, counters::QueryLife::running);
  EXPECT_EQ(node.queries[0].workers_pending, 1u);
  EXPECT_EQ(node.queries[0].first_worker_pending, 1u);
  EXPECT_EQ(node.queries[0].unopened_worker, 1u);
  EXPECT_EQ(node.queries[0].unopened_stage, 7u);
  cluster[0].remove_unopened(*a, 1, 7);
  cluster[0].end(*a, 1);
  node = shown.look();
  EXPECT_EQ(node.queries[0].unopened_worker, counters::kAnyPeer);
  EXPECT_EQ(node.queries[0].nodes_pending, 1u) << "this node is the issuer, and waits for node 1";
  EXPECT_EQ(node.queries[0].first_node_pending, 1u);
  cluster.end(1, *b);
  cluster.deliver_all();
  cluster[0].remove_unopened(*a, 1, 7);  // a worker that still has the query
  node = shown.look();
  EXPECT_TRUE(node.queries.empty());
  EXPECT_EQ(node.counters.queries_running, 0u);
}

TEST(QueryTable, shows_as_many_queries_as_there_is_room_for_and_counts_them_all) {
  Cluster cluster(2);
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
  (void)cluster.use(0, cluster[0].begin());
  EXPECT_EQ(shown.look().queries.size(), 1u) << "the room is free again";
}

TEST(QueryTable, ending_twice_is_ending_once) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto a = cluster.use(0, id);
  const auto b = cluster.use(1, id);
  for (int i = 0; i < 3; ++i) cluster[1].end(*b, 2);
  cluster.deliver_all();
  cluster.end(0, *a);
  cluster.deliver_all();
  EXPECT_FALSE(a->outcome_known()) << "worker 3 has not ended";
  cluster[1].end(*b, 3);
  cluster.deliver_all();
  EXPECT_TRUE(a->outcome_known() && b->outcome_known());
}

TEST(QueryTable, a_failure_reaches_every_participant_and_is_the_outcome) {
  for (const uint32_t failing : {0u, 1u, 2u}) {
    Cluster cluster(3);
    const QueryId id = cluster[1].begin();
    std::vector<std::shared_ptr<Query>> queries;
    for (uint32_t n = 0; n < 3; ++n) queries.push_back(cluster.use(n, id));
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
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  std::vector<std::shared_ptr<Query>> queries;
  for (uint32_t n = 0; n < 3; ++n) queries.push_back(cluster.use(n, id));
  cluster[1].fail(*queries[1], kCancelled);
  cluster.wires[1][0].clear();
  cluster.wires[1][2].clear();
  for (uint32_t n = 0; n < 3; ++n) cluster.end(n, *queries[n]);
  cluster.deliver_all();
  for (uint32_t n = 0; n < 3; ++n) {
    EXPECT_TRUE(queries[n]->outcome_known());
    EXPECT_EQ(queries[n]->cause().code(), Code::query_cancelled) << "node " << n;
  }
}

TEST(QueryTable, cancel_and_stop_of_a_query_not_known_yet_are_remembered) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto a = cluster.use(0, id);
  const uint32_t senders[] = {2, 3};
  cluster[0].stop(*a, 4, 1, senders);
  cluster.deliver_all();
  const auto b = cluster.use(1, id);
  EXPECT_EQ(cluster[1].stops(*b, 4), std::vector<uint32_t>{1});
  EXPECT_TRUE(cluster[1].stops(*b, 5).empty());
  EXPECT_TRUE(cluster[0].stops(*a, 4).empty()) << "no sender there";

  const QueryId other = cluster[0].begin();
  cluster[0].cancel(other, kCancelled);
  cluster.deliver_all();
  const auto late = cluster.use(1, other);
  EXPECT_TRUE(late->failed());
  EXPECT_EQ(late->cause().code(), Code::query_cancelled);
}

TEST(QueryTable, a_stop_that_is_repeated_is_kept_once) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(0, id);
  QueryMessage stop = message_of(QueryMessageKind::stop, id);
  stop.first = 3;
  stop.second = 2;
  for (int i = 0; i < 1000; ++i) cluster[0].on_message(1, stop);
  EXPECT_EQ(cluster[0].stops(*query, 3).size(), 1u);
}

TEST(QueryTable, ids_that_cannot_be_are_refused) {
  Cluster cluster(2);
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

// --- a node that starts again

constexpr uint64_t kNextIncarnation = 2001;  // of node 1

void lose_and_return(Cluster& cluster) {
  for (const uint32_t n : {0u, 2u}) {
    cluster[n].on_peer_lost(1, kLost);
    cluster[n].on_peer_joined(1, kNextIncarnation);
  }
}

TEST(QueryTable, a_query_begun_before_a_node_came_back_fails_by_name_and_does_not_reach_it) {
  Cluster cluster(3);
  const QueryId unused = cluster[0].begin();
  lose_and_return(cluster);
  const auto elsewhere = cluster.use(2, unused);
  EXPECT_FALSE(elsewhere->failed()) << "only its issuer knows how old it is";
  const auto query = cluster.use(0, unused);
  EXPECT_EQ(query->cause().code(), Code::peer_lost);
  EXPECT_NE(query->cause().message().find("node 1"), std::string_view::npos);
  EXPECT_TRUE(cluster.wires[0][1].empty()) << "its next incarnation knows nothing of it";
  cluster.deliver(0, 2);
  EXPECT_TRUE(elsewhere->failed());
  cluster.end(0, *query);
  cluster.end(2, *elsewhere);
  cluster.deliver_all();
  EXPECT_TRUE(elsewhere->outcome_known()) << "nobody waits for the node that came back";
  EXPECT_EQ(cluster[0].running_count() + cluster[2].running_count(), 0u);
}

TEST(QueryTable, an_issuer_that_takes_no_part_fails_what_it_declares_too_late) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  lose_and_return(cluster);
  const auto query = cluster.use(2, id);
  EXPECT_TRUE(cluster[0].declare(id, {2, 3, 4, 5}).ok());
  cluster.deliver(0, 2);
  EXPECT_EQ(query->cause().code(), Code::peer_lost);
}

TEST(QueryTable, a_query_used_before_a_loss_is_not_made_whole_by_a_return) {
  Cluster cluster(3);
  const auto query = cluster.use(2, cluster[0].begin());
  lose_and_return(cluster);
  EXPECT_EQ(query->cause().code(), Code::peer_lost);
}

// A hostile member may guess the ids of queries to come, and may be the node that is lost.
TEST(QueryTable, what_was_only_said_of_a_query_before_a_loss_does_not_spoil_it_after_the_return) {
  for (const uint32_t speaker : {0u, 1u}) {
    Cluster cluster(3);
    QueryId id = cluster[0].begin();
    ++id.counter;  // the next one
    QueryMessage stop = message_of(QueryMessageKind::stop, id);
    stop.second = 2 * speaker;
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

TEST(QueryTable, a_query_begun_after_a_node_came_back_contains_it) {
  Cluster cluster(3);
  lose_and_return(cluster);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(0, id);
  EXPECT_FALSE(query->failed());
  cluster.end(0, *query);
  cluster.end(2, *cluster.use(2, id));
  cluster.deliver_all();
  EXPECT_FALSE(query->outcome_known()) << "node 1 has not ended";
}

TEST(QueryTable, what_ended_in_a_former_life_is_not_taken_for_what_begins_in_the_next) {
  Cluster cluster(3);
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
  const Status over = cluster[0].use({3, 1001, 1, 0}).status();
  EXPECT_EQ(over.code(), Code::peer_lost) << over.to_string();
}

TEST(QueryTable, only_the_issuer_decides) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(2, id);
  QueryMessage outcome = message_of(QueryMessageKind::outcome, id);
  outcome.low_water = UINT64_MAX;
  cluster[2].on_message(1, outcome);
  EXPECT_FALSE(query->outcome_known());
  cluster[2].on_message(2, outcome);
  EXPECT_FALSE(query->outcome_known());
  EXPECT_TRUE(cluster[2].use(id).ok());
}

TEST(QueryTable, an_outcome_comes_early_or_twice) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(1, id);
  QueryMessage outcome = message_of(QueryMessageKind::outcome, id);
  outcome.second = static_cast<int32_t>(Code::query_failed);
  outcome.text = "elsewhere";
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
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(0, id);
  QueryMessage fail = message_of(QueryMessageKind::fail, id);
  fail.second = 12345;
  fail.text = "of a later version";
  cluster[0].on_message(1, fail);
  EXPECT_EQ(query->cause().code(), Code::query_failed);
  EXPECT_EQ(query->cause().message(), "of a later version");

  const QueryId other = cluster[0].begin();
  const auto no_cause = cluster.use(0, other);
  cluster[0].on_message(1, message_of(QueryMessageKind::fail, other));
  EXPECT_EQ(no_cause->cause().code(), Code::query_failed) << "a failure without a code";
}

TEST(QueryTable, a_confirmation_that_never_comes_keeps_the_issuer_remembering) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto a = cluster.use(0, id);
  const auto b = cluster.use(1, id);
  cluster.end(0, *a);
  cluster.end(1, *b);
  cluster.deliver(1, 0);
  cluster.deliver(0, 1);
  EXPECT_TRUE(a->outcome_known() && b->outcome_known());
  EXPECT_EQ(cluster[1].running_count(), 0u);
  EXPECT_EQ(cluster[0].running_count(), 1u);
  EXPECT_TRUE(cluster[0].use(id).ok()) << "not an error: it is still known";
  cluster[0].on_message(1, message_of(QueryMessageKind::confirm, id));
  cluster[0].on_message(1, message_of(QueryMessageKind::confirm, id));
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

TEST(QueryTable, a_confirmation_before_the_outcome_means_nothing) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto a = cluster.use(0, id);
  cluster[0].on_message(1, message_of(QueryMessageKind::confirm, id));
  cluster.end(0, *a);
  EXPECT_FALSE(a->outcome_known()) << "node 1 has not ended";
}

TEST(QueryTable, who_asks_again_after_the_end_is_answered) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto a = cluster.use(0, id);
  const auto b = cluster.use(1, id);
  cluster.end(0, *a);
  cluster.end(1, *b);
  cluster.deliver_all();
  ASSERT_EQ(cluster[0].running_count(), 0u);
  cluster[0].on_message(1, message_of(QueryMessageKind::ended, id));
  ASSERT_EQ(cluster.wires[0][1].size(), 1u);
  EXPECT_EQ(cluster.wires[0][1].front().kind, QueryMessageKind::outcome);
}

TEST(QueryTable, low_water_marks_forget_many_ended_queries_and_no_others) {
  Cluster cluster(2);
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
  Cluster cluster(2);
  const QueryId first = cluster[0].begin();
  const QueryId second = cluster[0].begin();
  QueryMessage outcome = message_of(QueryMessageKind::outcome, first);
  outcome.low_water = UINT64_MAX;
  cluster[1].on_message(0, outcome);
  EXPECT_FALSE(cluster[1].use(first).ok());
  EXPECT_TRUE(cluster[1].use(second).ok()) << "it has not ended";
}

TEST(QueryTable, a_lost_participant_fails_the_queries_that_contain_it_and_no_others) {
  Cluster cluster(3);
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

TEST(QueryTable, a_lost_issuer_is_the_end) {
  Cluster cluster(2);
  const QueryId id = cluster[1].begin();
  const auto query = cluster.use(0, id);
  cluster[0].on_peer_lost(1, kLost);
  EXPECT_TRUE(query->failed());
  EXPECT_TRUE(query->outcome_known()) << "nobody else will answer";
  cluster.end(0, *query);
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

TEST(QueryTable, a_query_that_is_first_used_after_its_issuer_was_lost_is_over) {
  Cluster cluster(3);
  const QueryId id = cluster[1].begin();
  cluster[0].on_peer_lost(1, kLost);
  for (const Status& status : {cluster[0].declare(id, {0, 1, 4, 5}), cluster[0].use(id).status()}) {
    EXPECT_EQ(status.code(), Code::peer_lost) << status.to_string();
    EXPECT_EQ(status.message(), kLost.message());
  }
  // What others still say of it is not remembered: nobody would end it.
  QueryMessage fail = message_of(QueryMessageKind::fail, id);
  fail.second = static_cast<int32_t>(Code::peer_lost);
  cluster[0].on_message(2, fail);
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

TEST(QueryTable, a_worker_that_comes_after_the_end_with_a_lost_issuer_hears_of_the_loss) {
  Cluster cluster(2);
  const QueryId id = cluster[1].begin();
  ASSERT_NE(cluster[0].hear(id, 1), nullptr);  // its rows came
  cluster[0].on_peer_lost(1, kLost);
  const auto used = cluster[0].use(id);
  EXPECT_EQ(used.status().code(), Code::peer_lost) << used.status().to_string();
  EXPECT_EQ(used.status().message(), kLost.message());
}

TEST(QueryTable, where_a_query_is_not_used_yet_nobody_is_needed_but_its_issuer) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  for (const uint32_t n : {0u, 2u}) ASSERT_NE(cluster[n].hear(id, 1), nullptr);
  cluster[2].on_peer_lost(1, kLost);  // it takes no part, as node 2 will hear
  ASSERT_TRUE(cluster[2].declare(id, {0, 1, 4, 5}).ok());
  EXPECT_FALSE(cluster.use(2, id)->failed());
  cluster.deliver_all();
  EXPECT_FALSE(cluster[0].find(id)->failed());
}

TEST(QueryTable,
     a_query_that_failed_before_it_was_declared_is_remembered_nowhere_once_it_has_ended) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  cluster[1].cancel(id, Status(Code::query_cancelled, "before it was declared"));
  cluster.deliver_all();
  ASSERT_TRUE(cluster[0].declare(id, {0, 1, 2, 3}).ok());  // node 2 takes no part
  for (const uint32_t n : {0u, 1u}) cluster.end(n, *cluster.use(n, id));
  cluster.deliver_all();
  for (const uint32_t n : {0u, 1u, 2u}) EXPECT_EQ(cluster[n].running_count(), 0u) << "node " << n;
}

TEST(QueryTable, a_peer_stops_receivers_of_its_own_only) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(0, id);
  QueryMessage stop = message_of(QueryMessageKind::stop, id);
  stop.first = 7;
  for (const int32_t receiver : {2, 4, 6, -1}) {  // 2 is of node 1, 6 and -1 are of none
    stop.second = receiver;
    cluster[0].on_message(1, stop);
  }
  EXPECT_EQ(cluster[0].stops(*query, 7), std::vector<uint32_t>{2});
}

TEST(QueryTable, a_peer_that_leaves_after_the_outcome_is_no_loss) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto a = cluster.use(0, id);
  const auto b = cluster.use(1, id);
  cluster.end(0, *a);
  cluster.end(1, *b);
  cluster.deliver(1, 0);
  ASSERT_TRUE(a->outcome_known());
  cluster[0].on_peer_lost(1, kLost);  // before its CONFIRM
  EXPECT_FALSE(a->failed());
  EXPECT_EQ(cluster[0].running_count(), 0u);
}

// Node 2 has the outcome and leaves; node 1 hears that before it hears the outcome, for these come
// on different connections.
TEST(QueryTable, a_participant_that_leaves_after_its_end_does_not_fail_the_others) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  std::vector<std::shared_ptr<Query>> queries;
  for (uint32_t n = 0; n < 3; ++n) queries.push_back(cluster.use(n, id));
  for (uint32_t n = 0; n < 3; ++n) cluster.end(n, *queries[n]);
  cluster.deliver(1, 0);
  cluster.deliver(2, 0);
  cluster.deliver(0, 2);
  ASSERT_TRUE(queries[2]->outcome_known());
  cluster[1].on_peer_lost(2, Status(Code::peer_lost, "node 2 closed its session"));
  cluster.deliver(0, 1);
  EXPECT_TRUE(queries[1]->outcome_known());
  EXPECT_TRUE(queries[1]->cause().ok()) << queries[1]->cause().to_string();
}

TEST(QueryTable, an_issuer_that_takes_no_part_decides_all_the_same) {
  Cluster cluster(2);
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
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  for (const uint32_t n : {0u, 1u, 2u}) ASSERT_TRUE(cluster[n].declare(id, {2, 4}).ok());
  const auto b = cluster.use(1, id);
  const auto c = cluster.use(2, id);
  cluster[0].cancel(id, kCancelled);
  cluster.deliver_all();
  EXPECT_TRUE(b->failed() && c->failed());
}

TEST(QueryTable, a_declaration_is_refused_when_it_is_late_or_names_nobody) {
  Cluster cluster(2);
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
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(0, id);
  cluster[0].add_unopened(*query, 1, 3, 2, 5'000'000'000);
  cluster[0].on_tick(5'000'000'000 + kUnopened - 1);
  EXPECT_FALSE(query->failed());
  cluster[0].on_tick(4'000'000'000);  // a clock of another thread may be a little behind
  EXPECT_FALSE(query->failed());
  cluster[0].on_tick(5'000'000'000 + kUnopened);
  EXPECT_TRUE(query->failed());
  EXPECT_EQ(query->cause().code(), Code::query_unopened);
  EXPECT_NE(query->cause().message().find("query.unopened_timeout_ms = 1000"), std::string::npos);
  cluster.deliver_all();
  EXPECT_TRUE(cluster.use(1, id)->failed());

  const QueryId opened = cluster[0].begin();
  const auto in_time = cluster.use(0, opened);
  cluster[0].add_unopened(*in_time, 1, 3, 2, 0);
  cluster[0].remove_unopened(*in_time, 1, 3);
  cluster[0].on_tick(10 * kUnopened);
  EXPECT_FALSE(in_time->failed());
}

TEST(QueryTable, closing_fails_everything_and_nothing_begins) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto a = cluster.use(0, id);
  const auto b = cluster.use(1, id);
  cluster[0].close(Status(Code::peer_lost, "node 0 closed its session"));
  cluster[0].close(Status(Code::peer_lost, "again"));
  EXPECT_TRUE(a->failed());
  cluster.deliver_all();
  EXPECT_TRUE(b->failed());
  EXPECT_EQ(b->cause().message(), "node 0 closed its session");
  EXPECT_FALSE(cluster[0].use(cluster[0].begin()).ok());
}

TEST(QueryTable, the_biggest_user_of_overflow_is_found_among_those_that_run) {
  Cluster cluster(1);
  EXPECT_EQ(cluster[0].biggest_overflow_user(), nullptr);
  const auto a = cluster.use(0, cluster[0].begin());
  const auto b = cluster.use(0, cluster[0].begin());
  a->usage.bytes = 10;
  b->usage.bytes = 20;
  EXPECT_EQ(cluster[0].biggest_overflow_user(), b);
  cluster[0].fail(*b, kCancelled);
  EXPECT_EQ(cluster[0].biggest_overflow_user(), a);
}

// --- who may say what about which query

// Ids that the others have never heard of, as a hostile node makes them up.
QueryId made_up(uint32_t issuer, uint64_t number) {
  return {1'000'000 + 7 * number, 1000 + issuer, issuer, 0};
}

TEST(QueryTable, a_peer_that_makes_up_queries_uses_up_its_own_share_and_ends_its_link) {
  Cluster cluster(3);
  QueryMessage stop = message_of(QueryMessageKind::stop, {});
  stop.second = 2;  // a worker of node 1
  uint64_t said = 0;
  for (; cluster.nodes[0].offenders.empty() && said < 100'000; ++said) {
    if (said % 2 == 0) {
      (void)cluster[0].hear(made_up(1 + said % 4 / 2, said), 1);
    } else {
      stop.query = to_key(made_up(1 + said % 4 / 2, said));
      cluster[0].on_message(1, stop);
    }
  }
  ASSERT_EQ(cluster.nodes[0].offenders.size(), 1u);
  const auto& [node, cause] = cluster.nodes[0].offenders.front();
  EXPECT_EQ(node, 1u);
  EXPECT_EQ(cause.code(), Code::protocol_error);
  EXPECT_NE(cause.message().find("16384 queries"), std::string_view::npos) << cause.message();
  const uint64_t kept = cluster[0].running_count();
  EXPECT_LE(kept, 16384u);
  for (uint64_t more = 0; more < 100; ++more)
    EXPECT_EQ(cluster[0].hear(made_up(1, said + more), 1), nullptr);
  EXPECT_EQ(cluster[0].running_count(), kept);
  // Nobody else is concerned.
  EXPECT_NE(cluster[0].hear(made_up(2, said), 2), nullptr);
  EXPECT_TRUE(cluster[0].use(cluster[0].begin()).ok());
  EXPECT_TRUE(cluster[0].use(made_up(2, said + 1)).ok());
  // And what was made up expires.
  cluster[0].on_tick(kUnopened);
  EXPECT_EQ(cluster[0].running_count(), 2u);
  EXPECT_NE(cluster[0].hear(made_up(1, said), 1), nullptr);
}

TEST(QueryTable, more_stops_than_a_share_of_one_query_that_nobody_knows_end_the_link) {
  Cluster cluster(2);
  QueryMessage stop = message_of(QueryMessageKind::stop, made_up(1, 1));
  stop.second = 2;
  for (stop.first = 0; stop.first < 16383; ++stop.first) cluster[0].on_message(1, stop);
  EXPECT_TRUE(cluster.nodes[0].offenders.empty());
  cluster[0].on_message(1, stop);
  EXPECT_EQ(cluster.nodes[0].offenders.size(), 1u);
  // A query that is used has its own limit, and the share is free again.
  cluster.use(0, made_up(1, 1));
  EXPECT_NE(cluster[0].hear(made_up(1, 2), 1), nullptr);
}

TEST(QueryTable, a_peer_that_takes_no_part_fails_nothing) {
  for (const auto kind : {QueryMessageKind::fail, QueryMessageKind::ended}) {
    for (const bool early : {false, true}) {
      Cluster cluster(3);
      const QueryId id = cluster[0].begin();
      QueryMessage lie = message_of(kind, id);
      lie.second = static_cast<int32_t>(Code::query_failed);
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

TEST(QueryTable, a_failure_that_comes_before_the_declaration_counts_if_its_node_takes_part) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  QueryMessage fail = message_of(QueryMessageKind::fail, id);
  fail.second = static_cast<int32_t>(Code::query_cancelled);
  fail.text = "enough";
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

TEST(QueryTable, a_cancel_that_crosses_the_outcome_changes_it_nowhere) {
  for (const uint32_t late : {1u, 2u}) {
    Cluster cluster(3);
    const QueryId id = cluster[0].begin();
    std::vector<std::shared_ptr<Query>> queries;
    for (uint32_t n = 0; n < 3; ++n) queries.push_back(cluster.use(n, id));
    for (uint32_t n = 0; n < 3; ++n) cluster.end(n, *queries[n]);
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

TEST(QueryTable, a_cancel_after_the_own_end_is_the_outcome_if_the_issuer_has_not_decided) {
  Cluster cluster(3);
  const QueryId id = cluster[0].begin();
  std::vector<std::shared_ptr<Query>> queries;
  for (uint32_t n = 0; n < 3; ++n) queries.push_back(cluster.use(n, id));
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

TEST(QueryTable, an_issuer_that_does_not_answer_keeps_nobody_from_cancelling) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(1, id);
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

TEST(QueryTable, a_cancel_by_a_node_that_takes_no_part_is_forgotten_there) {
  for (const bool early : {false, true}) {
    Cluster cluster(3);
    const QueryId id = cluster[0].begin();
    if (early) {
      cluster[1].cancel(id, kCancelled);
      cluster.deliver_all();
    }
    for (const uint32_t n : {0u, 2u}) ASSERT_TRUE(cluster[n].declare(id, {0, 4}).ok());
    if (!early) cluster[1].cancel(id, kCancelled);
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

TEST(QueryTable, an_issuer_that_says_done_of_what_has_not_ended_well_here_breaks_the_protocol) {
  for (const bool failed : {false, true}) {
    Cluster cluster(2);
    const QueryId id = cluster[0].begin();
    const auto query = cluster.use(1, id);
    if (failed) {
      cluster[1].fail(*query, kCancelled);
      cluster.end(1, *query);
    }
    cluster[1].on_message(0, message_of(QueryMessageKind::outcome, id));
    EXPECT_FALSE(query->outcome_known());
    ASSERT_EQ(cluster.nodes[1].offenders.size(), 1u);
    EXPECT_EQ(cluster.nodes[1].offenders[0].first, 0u);
    EXPECT_NE(cluster.nodes[1].offenders[0].second.message().find(failed ? "failed" : "not ended"),
              std::string_view::npos);
  }
}

TEST(QueryTable, rows_of_a_peer_that_takes_no_part_end_its_link_and_no_query) {
  Cluster cluster(3);
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

TEST(QueryTable, what_a_peer_spoils_before_a_query_is_used_here_counts_if_it_takes_part) {
  for (const bool takes_part : {false, true}) {
    Cluster cluster(3);
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

TEST(QueryTable, a_failure_told_by_the_issuer_is_kept_while_the_issuer_says_so) {
  Cluster cluster(2);
  const QueryId id = cluster[0].begin();
  const auto query = cluster.use(0, id);
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
  QueryMessage fail = message_of(QueryMessageKind::fail, made_up(0, 1));
  fail.second = static_cast<int32_t>(Code::query_failed);
  cluster[1].on_message(0, fail);
  ASSERT_EQ(cluster[1].running_count(), 2u);
  cluster[1].on_tick(now += kUnopened);
  cluster.deliver_all();
  EXPECT_EQ(cluster[1].running_count(), 1u);
  // One that does not answer.
  cluster[1].on_message(0, fail);
  cluster[1].on_tick(now += kUnopened);
  ASSERT_EQ(cluster[1].running_count(), 2u);
  cluster[1].on_tick(now += kUnopened);
  EXPECT_EQ(cluster[1].running_count(), 1u);
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
    Cluster cluster(3);
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
