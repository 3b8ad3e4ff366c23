// Queries where nodes come and go: what is kept for nodes that are not linked yet, and who releases a drained node. Messages
// are delivered by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/query_cluster.h"

namespace faro::shuffle {
namespace {

using test::expect_error;
using test::is_ok;

constexpr uint64_t kNext = 2003;  // incarnation of the next process of node 3

/// Node 3 is removed there, and another process has its number.
void replace_3(QueryCluster& cluster, uint32_t at) {
  cluster[at].on_peer_lost(3, Status(Code::peer_lost, "node 3 was removed"));
  cluster[at].on_node_removed(3);
  cluster[at].on_node_added(3);
  cluster[at].on_peer_joined(3, kNext);
}

TEST(QueryChanges, a_node_that_is_told_late_of_a_drain_does_not_release_the_next_process) {
  QueryCluster cluster(4, true);
  replace_3(cluster, 0);
  // Node 1 is told now that the former process was drained.
  cluster[1].drain(3);
  cluster.deliver(1, 0);
  cluster[0].drain(3);
  for (const uint32_t n : {2u, 3u}) {
    QueryMessage released;
    released.kind = QueryMessageKind::released;
    released.first = 3;
    released.number = kNext;
    cluster[0].on_message(n, released);
  }
  EXPECT_TRUE(cluster.nodes[0].released.empty()) << "node 1 may begin queries that need it";
  replace_3(cluster, 1);
  cluster[1].drain(3);
  cluster.deliver(1, 0);
  EXPECT_EQ(cluster.nodes[0].released, std::vector<uint32_t>{3});
}

// Whoever has added the node comes late: it is linked by now.
TEST(QueryChanges, an_older_view_of_a_node_does_not_take_a_newer_one_back) {
  QueryCluster cluster(4, true);
  cluster[0].on_peer_lost(3, kLost);
  cluster[0].on_node_removed(3);
  const session::PeerView added = cluster.nodes[0].peers->on(3, session::Peers::Event::added).now;
  cluster[0].on_peer_joined(3, kNext);
  cluster[0].QueryTable::on_node_added(3, added);
  const QueryId id = cluster[0].begin();
  EXPECT_TRUE(is_ok(cluster[0].declare(id, {0, 1, 6, 7})));
  EXPECT_TRUE(cluster.nodes[0].wanted.empty()) << "there is a link";
  cluster[0].on_peer_lost(3, kLost);
  cluster[0].QueryTable::on_node_added(3, added);
  expect_error(cluster.use(0, id)->cause(), Code::peer_lost, {});
}

TEST(QueryChanges, one_that_does_not_know_the_process_releases_whichever_there_is) {
  QueryCluster cluster(2, true);
  QueryMessage released;
  released.kind = QueryMessageKind::released;
  released.first = 1;
  cluster[0].drain(1);
  cluster[0].on_message(1, released);
  EXPECT_EQ(cluster.nodes[0].released, std::vector<uint32_t>{1});
}

// Node 1 was linked with the former process only, and will not be with the one that has the number now.
TEST(QueryChanges, one_that_was_never_linked_with_the_process_releases_it) {
  QueryCluster cluster(4, true);
  replace_3(cluster, 0);
  cluster[1].on_peer_lost(3, Status(Code::peer_lost, "node 3 was removed"));
  cluster[1].on_node_removed(3);
  cluster[1].on_node_added(3);
  for (const uint32_t n : {0u, 1u}) cluster[n].drain(3);
  cluster.deliver(1, 0);
  for (const uint32_t n : {2u, 3u}) {
    QueryMessage released;
    released.kind = QueryMessageKind::released;
    released.first = 3;
    cluster[0].on_message(n, released);
  }
  EXPECT_EQ(cluster.nodes[0].released, std::vector<uint32_t>{3});
}

// Node 0 was linked with the former process only, and will not be with the one that has the number now.
TEST(QueryChanges, a_process_that_was_never_linked_is_drained_when_the_others_release_it) {
  QueryCluster cluster(3, true);
  cluster[0].on_peer_lost(2, Status(Code::peer_lost, "node 2 was removed"));
  cluster[0].on_node_removed(2);
  cluster[0].on_node_added(2);
  cluster[0].drain(2);
  QueryMessage released;
  released.kind = QueryMessageKind::released;
  released.first = 2;
  released.number = 1002;
  cluster[0].on_message(1, released);
  EXPECT_TRUE(cluster.nodes[0].released.empty()) << "node 1 means the former process";
  released.number = kNext;
  cluster[0].on_message(1, released);
  EXPECT_EQ(cluster.nodes[0].released, std::vector<uint32_t>{2});
}

// Nodes 0 and 1 were never linked with node 3. What node 1 says of its former process comes when node 0 has removed that one.
TEST(QueryChanges, what_was_said_of_a_former_process_does_not_release_the_next_one) {
  QueryCluster cluster(4, true);
  for (const uint32_t n : {0u, 1u}) {
    cluster[n].on_peer_lost(3, Status(Code::peer_lost, "node 3 was removed"));
    cluster[n].on_node_removed(3);
    cluster[n].on_node_added(3);
  }
  cluster[1].drain(3);
  cluster[1].on_node_removed(3);
  cluster[1].on_node_added(3);  // the next one
  cluster.deliver(1, 0);
  cluster[0].on_peer_joined(3, kNext);
  cluster[0].drain(3);
  for (const uint32_t n : {2u, 3u}) {
    QueryMessage released;
    released.kind = QueryMessageKind::released;
    released.first = 3;
    released.number = n == 3 ? kNext : 0;
    cluster[0].on_message(n, released);
  }
  EXPECT_TRUE(cluster.nodes[0].released.empty()) << "node 1 may begin queries that need it";
  cluster[1].drain(3);
  cluster.deliver(1, 0);
  EXPECT_EQ(cluster.nodes[0].released, std::vector<uint32_t>{3});
}

// Node 0 has released node 2 before it is told of a query of node 1, with which it is not linked.
TEST(QueryChanges, a_drain_waits_for_a_query_that_waits_for_its_issuer) {
  QueryCluster cluster(3, true);
  const QueryId id = cluster[1].begin();
  for (const uint64_t former : {1001, 1501}) {
    if (former == 1501) cluster[0].on_peer_joined(1, former);
    cluster[0].on_peer_lost(1, Status(Code::peer_lost, "node 1 was removed"));
    cluster[0].on_node_removed(1);
    cluster[0].on_node_added(1);
  }
  cluster[0].drain(2);
  for (const uint32_t n : {0u, 1u}) EXPECT_TRUE(is_ok(cluster[n].declare(id, {0, 2, 4})));
  cluster[2].drain(2);
  cluster.deliver(2, 0);
  EXPECT_TRUE(cluster.nodes[0].released.empty());
  cluster[0].on_peer_joined(1, 1001);
  EXPECT_FALSE(cluster.use(0, id)->failed());
  cluster[1].drain(2);
  EXPECT_TRUE(cluster.nodes[0].released.empty()) << "node 1 needs it";
}

// Node 0 is linked with nodes 1 and 2, but not with node 3, which all three are told to drain.
TEST(QueryChanges, a_node_that_is_not_linked_is_drained_when_those_that_are_have_released_it) {
  QueryCluster cluster(4, true);
  replace_3(cluster, 0);  // by a process that is gone, too
  for (const uint32_t n : {1u, 3u}) {
    cluster[0].on_peer_lost(n, Status(Code::peer_lost, "it was removed"));
    cluster[0].on_node_removed(n);
  }
  cluster[0].on_peer_joined(1, 1001);
  cluster[0].on_node_added(3);
  const QueryId id = cluster[1].begin();
  for (const uint32_t n : {1u, 3u}) EXPECT_TRUE(is_ok(cluster[n].declare(id, {0, 2, 6})));
  for (const uint32_t n : {0u, 1u, 2u}) cluster[n].drain(3);
  cluster.deliver(2, 0);
  EXPECT_TRUE(cluster.nodes[0].released.empty()) << "node 1 has begun a query that needs it";
  EXPECT_TRUE(is_ok(cluster[0].declare(id, {0, 2, 6})));
  EXPECT_FALSE(cluster.use(0, id)->failed());
  for (const uint32_t n : {0u, 1u, 3u}) cluster.end(n, *cluster.use(n, id));
  for (const uint32_t n : {0u, 3u}) cluster.deliver(n, 1);
  for (const uint32_t n : {0u, 3u}) cluster.deliver(1, n);  // OUTCOME
  EXPECT_EQ(cluster[0].running_count(), 0u);
  EXPECT_TRUE(cluster.nodes[0].released.empty()) << "node 1 has not released it";
  for (const uint32_t n : {0u, 3u}) cluster.deliver(n, 1);  // CONFIRM
  cluster.deliver(1, 0);
  EXPECT_EQ(cluster.nodes[0].released, std::vector<uint32_t>{3});
}

TEST(QueryChanges, a_node_that_is_lost_and_then_drained_is_lost_for_the_first_reason) {
  QueryCluster cluster(3, true);
  for (const char* why : {"it gave up", "node 2 was drained"})
    cluster[0].on_peer_lost(2, Status(Code::peer_lost, why));
  const QueryId id = cluster[1].begin();
  EXPECT_TRUE(is_ok(cluster[0].declare(id, {0, 2, 4})));
  expect_error(cluster.use(0, id)->cause(), Code::peer_lost, {"it gave up"});
}

TEST(QueryChanges, rows_that_come_before_their_issuer_is_known_fail_the_query) {
  QueryCluster cluster(3, true);
  cluster[0].on_peer_lost(1, Status(Code::peer_lost, "it was removed"));
  cluster[0].on_node_removed(1);
  const QueryId id = cluster[1].begin();
  for (const uint32_t n : {1u, 2u}) EXPECT_TRUE(is_ok(cluster[n].declare(id, {0, 2, 4})));
  const auto issuers = cluster.use(1, id), senders = cluster.use(2, id);
  EXPECT_EQ(cluster[0].hear(id, 2), nullptr);
  cluster.deliver(0, 2);
  cluster.end(2, *senders);
  cluster.deliver(2, 1);
  for (const auto& query : {issuers, senders})
    expect_error(query->cause(), Code::query_unopened,
                 {"node 0, which does not know node 1", "Nodes::add"});
}

TEST(QueryChanges, rows_that_come_before_a_new_process_of_their_issuer_is_known_fail_the_query) {
  QueryCluster cluster(3, true);
  cluster[2].on_peer_lost(1, Status(Code::peer_lost, "it was lost"));
  cluster[2].on_peer_joined(1, 2001);
  const QueryId id{1, 2001, 1, 0};
  EXPECT_TRUE(is_ok(cluster[2].declare(id, {0, 2, 4})));
  const auto query = cluster.use(2, id);
  EXPECT_EQ(cluster[0].hear(id, 2), nullptr) << "to it the former process is there";
  cluster.deliver(0, 2);
  expect_error(query->cause(), Code::peer_lost, {"another process", "node 1"});
}

// Node 1 has died and is there again, which node 0 has not noticed. Whoever runs its query would wait for node 0's part.
TEST(QueryChanges, a_new_process_is_told_of_its_queries_that_were_refused_before_it_was_linked) {
  QueryCluster cluster(3, true);
  const QueryId id{1, 2001, 1, 0};
  const QueryId former{7, 1001, 1, 0};
  expect_error(cluster[0].use(id).status(), Code::peer_lost, {"another process", "node 1"});
  EXPECT_TRUE(is_ok(cluster[0].declare(former, {0, 2})));
  cluster[0].on_peer_lost(1, Status(Code::peer_lost, "it has started again"));
  EXPECT_TRUE(cluster.wires[0][1].empty());
  cluster[0].on_peer_joined(1, 2001);
  ASSERT_EQ(cluster.wires[0][1].size(), 1u);
  const QueryMessage& word = cluster.wires[0][1].front();
  EXPECT_EQ(word.kind, QueryMessageKind::ended);
  EXPECT_EQ(word.query.counter, id.counter);
  EXPECT_EQ(word.second, static_cast<int32_t>(Code::peer_lost));
}

// Node 1 has begun a query of both before node 0 was told of node 1.
TEST(QueryChanges, an_issuer_is_told_that_its_query_could_not_be_declared_or_used) {
  for (const bool declares : {true, false}) {
    SCOPED_TRACE(declares ? "declared" : "used");
    QueryCluster cluster(2, true);
    cluster[0].on_peer_lost(1, kLost);
    cluster[0].on_node_removed(1);
    const QueryId id = cluster[1].begin();
    ASSERT_TRUE(is_ok(cluster[1].declare(id, {0, 2})));
    const std::shared_ptr<Query> query = cluster.use(1, id);
    cluster.deliver_all();
    const Status refused = declares ? cluster[0].declare(id, {0, 2}) : cluster[0].use(id).status();
    EXPECT_EQ(refused.code(), Code::peer_lost) << refused.to_string();
    cluster[0].on_node_added(1);
    cluster[0].on_peer_joined(1, 1001);
    cluster.deliver_all();
    ASSERT_TRUE(query->failed());
    EXPECT_EQ(query->cause().code(), Code::peer_lost);
    EXPECT_EQ(query->cause().message(), refused.message());
  }
}

// Node 0 has begun a query of the two others, and does not say so itself.
TEST(QueryChanges, a_query_that_its_issuer_does_not_declare_fails_by_name_when_others_have_ended) {
  QueryCluster cluster(3, true);
  const QueryId id = cluster[0].begin();
  std::vector<std::shared_ptr<Query>> queries;
  for (const uint32_t n : {1u, 2u}) {
    ASSERT_TRUE(is_ok(cluster[n].declare(id, {2, 4})));
    queries.push_back(cluster.use(n, id));
  }
  cluster[0].on_tick(10 * kUnopened);
  cluster[1].end(*queries[0], 2);  // node 2 is still at work
  cluster.deliver_all();
  cluster[0].on_tick(11 * kUnopened - 1);
  cluster.deliver_all();
  for (const auto& query : queries) EXPECT_FALSE(query->failed());
  cluster[0].on_tick(11 * kUnopened);
  cluster.deliver_all();
  EXPECT_TRUE(queries[0]->outcome_known());
  for (const auto& query : queries) {
    ASSERT_TRUE(query->failed());
    expect_error(query->cause(), Code::query_failed, {"declare_query", "node 0", id.to_string()});
  }
  ASSERT_EQ(cluster.nodes[0].told_failed.size(), 1u);
  EXPECT_EQ(cluster.nodes[0].told_failed[0].first, id);
  cluster[2].end(*queries[1], 4);
  cluster.deliver_all();
  EXPECT_TRUE(queries[1]->outcome_known());
  for (uint32_t n = 0; n < 3; ++n) EXPECT_EQ(cluster[n].running_count(), 0u) << n;
  expect_error(cluster[0].declare(id, {2, 4}), Code::query_failed, {"declare_query"});
}

TEST(QueryChanges, an_issuer_that_declares_its_query_after_others_have_ended_it_lets_it_be_done) {
  QueryCluster cluster(2, true);
  const QueryId id = cluster[0].begin();
  ASSERT_TRUE(is_ok(cluster[1].declare(id, {2})));
  const std::shared_ptr<Query> query = cluster.use(1, id);
  cluster[1].end(*query, 2);
  cluster.deliver_all();
  cluster[0].on_tick(kUnopened / 2);
  ASSERT_TRUE(is_ok(cluster[0].declare(id, {2})));
  cluster[0].on_tick(3 * kUnopened);
  cluster.deliver_all();
  ASSERT_TRUE(query->outcome_known());
  EXPECT_TRUE(is_ok(query->outcome()));
}

TEST(QueryChanges, what_was_refused_is_told_to_nobody_else) {
  QueryCluster cluster(3, true);
  EXPECT_FALSE(cluster[0].use({1, 2001, 1, 0}).ok());
  cluster[0].on_peer_lost(1, Status(Code::peer_lost, "it has started again"));
  cluster[0].on_peer_joined(1, 2002);
  EXPECT_TRUE(cluster.wires[0][1].empty());
  EXPECT_FALSE(cluster[0].use({1, 2003, 1, 0}).ok());
  cluster[0].on_peer_lost(1, Status(Code::peer_lost, "it was removed"));
  cluster[0].on_node_removed(1);
  cluster[0].on_node_added(1);
  cluster[0].on_peer_joined(1, 2003);
  EXPECT_TRUE(cluster.wires[0][1].empty());
}

// A query is then marked as ended for the process that it names, though no process of that node is known.
TEST(QueryChanges, rows_of_a_query_that_has_ended_are_not_kept_though_its_issuer_was_never_linked) {
  QueryCluster cluster(3, true);
  Table& here = cluster[1];
  here.on_peer_lost(0, Status(Code::peer_lost, "node 0 was removed"));
  here.on_node_removed(0);
  here.on_node_added(0);
  const QueryId id{5, 4000, 0, 0};
  EXPECT_TRUE(is_ok(here.declare(id, {0, 2, 4})));
  const auto query = cluster.use(1, id);
  here.on_tick(10);
  here.on_tick(10 + kTimeouts.link_ns);
  expect_error(query->cause(), Code::peer_lost, {"node 0 was not linked"});
  here.end(*query, 2);
  EXPECT_EQ(here.running_count(), 0u);

  EXPECT_EQ(here.hear(id, 2), nullptr);
  expect_error(here.use(id).status(), Code::query_ended, {"0:5"});
  EXPECT_NE(here.hear({5, 4001, 0, 0}, 2), nullptr) << "of another process";
  here.on_peer_joined(0, 4000);
  EXPECT_EQ(here.hear(id, 2), nullptr);
  EXPECT_EQ(here.hear({7, 4001, 0, 0}, 2), nullptr) << "it will not come any more";
  EXPECT_NE(here.hear({6, 4000, 0, 0}, 2), nullptr);
}

/// Node 1 knows node 0, which it is not linked with.
class NotLinkedYet : public testing::Test {
 protected:
  NotLinkedYet() {
    cluster_[1].on_peer_lost(0, Status(Code::peer_lost, "node 0 was removed"));
    cluster_[1].on_node_removed(0);
    cluster_[1].on_node_added(0);
  }
  Table& here() { return cluster_[1]; }
  size_t sent() { return cluster_.wires[1][0].size(); }
  void give_up() {
    here().on_tick(10);
    here().on_tick(10 + kTimeouts.link_ns);
  }

  QueryCluster cluster_{2, true};
  const QueryId id_{5, 4000, 0, 0};  // of the process that comes
};

TEST_F(NotLinkedYet, what_is_said_to_a_node_is_kept_in_order_until_it_is_linked) {
  EXPECT_TRUE(is_ok(here().declare(id_, {0, 2, 3})));
  EXPECT_EQ(cluster_.nodes[1].wanted, std::vector<uint32_t>{0});
  const auto query = cluster_.use(1, id_);
  here().stop(*query, 7, 2, std::vector<uint32_t>{0});
  cluster_.end(1, *query);
  EXPECT_EQ(sent(), 0u);
  here().on_peer_joined(0, 4000);
  ASSERT_EQ(sent(), 2u);
  EXPECT_EQ(cluster_.wires[1][0][0].kind, QueryMessageKind::stop);
  EXPECT_EQ(cluster_.wires[1][0][1].kind, QueryMessageKind::ended);
  EXPECT_FALSE(query->failed());
}

TEST_F(NotLinkedYet, a_question_is_not_kept_since_it_is_asked_again) {
  EXPECT_TRUE(is_ok(here().declare(id_, {0, 2, 3})));
  const auto query = cluster_.use(1, id_);
  here().await(*query, 2, 7, std::vector<uint32_t>{0}, {});
  here().on_peer_joined(0, 4000);
  EXPECT_EQ(sent(), 0u);
}

TEST_F(NotLinkedYet, a_node_that_does_not_come_in_time_is_lost_to_the_query) {
  EXPECT_TRUE(is_ok(here().declare(id_, {0, 2, 3})));
  const auto query = cluster_.use(1, id_);
  cluster_.end(1, *query);
  here().on_tick(10);  // since when it waits
  here().on_tick(10 + kTimeouts.link_ns - 1);
  EXPECT_FALSE(query->failed());
  here().on_tick(10 + kTimeouts.link_ns);
  expect_error(query->cause(), Code::peer_lost, {"node 0 was not linked"});
  EXPECT_TRUE(query->outcome_known()) << "nobody else decides";
  EXPECT_EQ(here().running_count(), 0u);
  // Not that its part went well, which was to be said.
  here().on_tick(11 + kTimeouts.link_ns);
  here().on_peer_joined(0, 4000);
  ASSERT_EQ(sent(), 1u);
  const QueryMessage& word = cluster_.wires[1][0][0];
  EXPECT_EQ(word.kind, QueryMessageKind::ended);
  EXPECT_EQ(word.second, static_cast<int32_t>(Code::peer_lost));
}

TEST_F(NotLinkedYet, a_node_that_was_given_up_is_told_of_the_latest_queries) {
  const auto begin = [&](uint64_t counter) {
    EXPECT_TRUE(is_ok(here().declare({counter, 4000, 0, 0}, {0, 2, 3})));
  };
  begin(1);
  give_up();
  for (uint64_t counter = 2; counter <= LinkWaits::kLastWordLimit + 1; ++counter) begin(counter);
  here().on_tick(20 + kTimeouts.link_ns);
  here().on_tick(20 + 2 * kTimeouts.link_ns);
  here().on_peer_joined(0, 4000);
  EXPECT_EQ(sent(), LinkWaits::kLastWordLimit);
  for (const QueryMessage& word : cluster_.wires[1][0]) EXPECT_NE(word.query.counter, 1u);
}

TEST_F(NotLinkedYet, another_process_than_the_one_that_was_given_up_is_told_nothing) {
  EXPECT_TRUE(is_ok(here().declare(id_, {0, 2, 3})));
  give_up();
  here().on_peer_joined(0, 4001);
  EXPECT_EQ(sent(), 0u);
}

TEST_F(NotLinkedYet, a_node_that_was_given_up_and_removed_is_told_nothing) {
  EXPECT_TRUE(is_ok(here().declare(id_, {0, 2, 3})));
  give_up();
  here().on_node_removed(0);
  here().on_node_added(0);
  here().on_peer_joined(0, 4000);
  EXPECT_EQ(sent(), 0u);
}

TEST_F(NotLinkedYet, workers_that_come_when_it_is_too_late_are_told_why) {
  EXPECT_TRUE(is_ok(here().declare(id_, {0, 2, 3})));
  here().on_tick(10);
  here().on_tick(10 + kTimeouts.link_ns);
  const auto query = cluster_.use(1, id_);
  ASSERT_NE(query, nullptr);
  expect_error(query->cause(), Code::peer_lost, {"node 0 was not linked"});
  cluster_.end(1, *query);
  EXPECT_EQ(here().running_count(), 0u);
}

TEST_F(NotLinkedYet, a_drain_waits_for_a_query_that_its_node_has_begun) {
  EXPECT_TRUE(is_ok(here().declare(id_, {2, 3})));
  here().drain(0);
  EXPECT_TRUE(cluster_.nodes[1].released.empty());
  here().on_peer_joined(0, 4000);
  const auto query = cluster_.use(1, id_);
  EXPECT_FALSE(query->failed());
  cluster_.end(1, *query);
  here().on_message(0, message_of(QueryMessageKind::outcome, id_, Code::ok));
  EXPECT_TRUE(query->outcome_known() && query->outcome().ok());
  EXPECT_TRUE(cluster_.nodes[1].released.empty()) << "its node may have begun others";
  QueryMessage released = message_of(QueryMessageKind::released, {});
  released.number = 4000;
  here().on_message(0, released);
  EXPECT_EQ(cluster_.nodes[1].released, std::vector<uint32_t>{0});
}

TEST_F(NotLinkedYet, another_process_has_not_begun_the_query) {
  EXPECT_TRUE(is_ok(here().declare(id_, {0, 2, 3})));
  const auto query = cluster_.use(1, id_);
  here().on_peer_joined(0, 4001);
  expect_error(query->cause(), Code::peer_lost, {"was begun by another process"});
  EXPECT_TRUE(query->outcome_known());
}

// The query waits for this node, which has not declared it and is not linked with its issuer.
TEST_F(NotLinkedYet, an_issuer_is_told_of_a_cancelled_query_when_it_is_linked) {
  EXPECT_TRUE(is_ok(here().cancel(id_, Status(Code::query_cancelled, "the user has gone"))));
  EXPECT_EQ(cluster_.nodes[1].wanted, std::vector<uint32_t>{0});
  here().on_peer_joined(0, 4000);
  ASSERT_EQ(sent(), 1u);
  EXPECT_EQ(cluster_.wires[1][0][0].kind, QueryMessageKind::fail);
}

TEST_F(NotLinkedYet, a_node_that_is_removed_is_lost_to_the_queries_that_wait_for_it) {
  EXPECT_TRUE(is_ok(here().declare(id_, {0, 2, 3})));
  const auto query = cluster_.use(1, id_);
  here().on_node_removed(0);
  expect_error(query->cause(), Code::peer_lost, {"was removed"});
  // Another process with its number has nothing to do with it.
  here().on_node_added(0);
  here().on_peer_joined(0, 4000);
  EXPECT_EQ(sent(), 0u);
}

TEST_F(NotLinkedYet, a_query_of_a_process_that_is_gone_was_lost_with_it) {
  const QueryId id{5, 1000, 0, 0};
  const auto lost = [&] {
    expect_error(here().declare(id, {0, 2, 3}), Code::peer_lost, {"node 0"});
    expect_error(here().use(id).status(), Code::peer_lost, {"node 0"});
  };
  lost();
  here().on_peer_joined(0, 4000);
  lost();
  here().on_peer_lost(0, kLost);
  here().on_node_removed(0);
  lost();
}

/// Two nodes that are not linked with each other have a query of node 0.
class LinkedTooLate : public testing::Test {
 protected:
  LinkedTooLate() {
    for (const uint32_t n : {0u, 1u}) {
      cluster_[n].on_peer_lost(1 - n, kLost);
      cluster_[n].on_peer_joined(1 - n, 4000);  // another process than the one that comes
      cluster_[n].on_peer_lost(1 - n, kLost);
      cluster_[n].on_node_removed(1 - n);
      cluster_[n].on_node_added(1 - n);
    }
    id_ = cluster_[0].begin();
  }
  std::shared_ptr<Query> use(uint32_t node) {
    EXPECT_TRUE(is_ok(cluster_[node].declare(id_, {0, 2})));
    return cluster_.use(node, id_);
  }
  void give_up(uint32_t node) {
    for (const base::Nanoseconds now : {base::Nanoseconds{10}, 10 + kTimeouts.link_ns})
      cluster_[node].on_tick(now);
  }
  void link() {
    for (const uint32_t n : {0u, 1u}) cluster_[n].on_peer_joined(1 - n, 1001 - n);
    cluster_.deliver_all();
  }
  void expect_nothing_left() {
    cluster_.deliver_all();
    for (const uint32_t n : {0u, 1u}) EXPECT_EQ(cluster_[n].running_count(), 0u) << n;
  }

  QueryCluster cluster_{2, true};
  QueryId id_;
};

// The issuer has begun to wait later than the other.
TEST_F(LinkedTooLate, an_issuer_hears_that_a_participant_has_given_it_up) {
  const auto issuers = use(0), others = use(1);
  give_up(1);
  cluster_.end(0, *issuers);
  link();
  expect_error(issuers->outcome(), Code::peer_lost, {"node 0 was not linked"});
  cluster_.end(1, *others);
  expect_nothing_left();
}

// Its vote was kept, and the other has been told that the query has failed.
TEST_F(LinkedTooLate, an_issuer_does_not_hear_that_all_went_well_before) {
  const auto issuers = use(0), others = use(1);
  cluster_.end(1, *others);
  give_up(1);
  expect_error(others->outcome(), Code::peer_lost, {"node 0 was not linked"});
  cluster_.end(0, *issuers);
  link();
  expect_error(issuers->outcome(), Code::peer_lost, {"node 0 was not linked"});
  expect_nothing_left();
}

TEST_F(LinkedTooLate, a_participant_that_comes_late_hears_that_the_issuer_has_given_it_up) {
  const auto issuers = use(0);
  give_up(0);
  cluster_.end(0, *issuers);
  EXPECT_EQ(cluster_[0].running_count(), 0u);
  const auto others = use(1);
  link();
  expect_error(others->cause(), Code::peer_lost, {"node 1 was not linked"});
  cluster_.end(1, *others);
  expect_nothing_left();
}

TEST_F(LinkedTooLate, a_participant_that_comes_when_they_are_linked_hears_it_too) {
  const auto issuers = use(0);
  give_up(0);
  cluster_.end(0, *issuers);
  link();
  const auto others = use(1);
  expect_error(others->cause(), Code::peer_lost, {"node 1 was not linked"});
  cluster_.end(1, *others);
  expect_nothing_left();
}

TEST_F(LinkedTooLate, a_participant_hears_of_a_query_that_was_cancelled_before_it_was_declared) {
  EXPECT_TRUE(is_ok(cluster_[0].cancel(id_, kCancelled)));
  const auto issuers = use(0), others = use(1);
  link();
  expect_error(others->cause(), kCancelled.code(), {kCancelled.message()});
  cluster_.end(0, *issuers);
  cluster_.end(1, *others);
  expect_nothing_left();
}

TEST_F(LinkedTooLate, nothing_is_left_of_a_query_that_both_have_given_up) {
  const auto issuers = use(0), others = use(1);
  for (const uint32_t n : {0u, 1u}) give_up(n);
  cluster_.end(0, *issuers);
  cluster_.end(1, *others);
  link();
  expect_nothing_left();
}

/// Node 1 is not linked with node 0, whose query has failed, and has ended on node 2. No node waits for a link any more.
class EndedElsewhere : public testing::Test {
 protected:
  EndedElsewhere() {
    for (const auto& [one, other] : {std::pair(0u, 1u), std::pair(1u, 0u)}) {
      cluster_[one].on_peer_lost(other, kLost);
      cluster_[one].on_peer_joined(other, 4000);  // another process than the one that comes
      cluster_[one].on_peer_lost(other, kLost);
      cluster_[one].on_node_removed(other);
      cluster_[one].on_node_added(other);
    }
    const QueryId id = cluster_[0].begin();
    for (const uint32_t n : {0u, 1u, 2u}) EXPECT_TRUE(is_ok(cluster_[n].declare(id, {0, 2, 4})));
    late_ = cluster_.use(1, id);
    const auto elsewhere = cluster_.use(2, id);
    EXPECT_TRUE(is_ok(cluster_[0].cancel(id, kCancelled)));
    cluster_[0].end(*cluster_.use(0, id), 0);
    cluster_.deliver(0, 2);
    cluster_[2].end(*elsewhere, 4);
    cluster_.deliver(2, 0);
    for (const base::Nanoseconds now : {base::Nanoseconds{10}, 10 + kTimeouts.link_ns})
      cluster_[0].on_tick(now);
    cluster_.deliver(0, 2);
    cluster_.deliver(2, 0);
    EXPECT_EQ(cluster_[0].running_count() + cluster_[2].running_count(), 0u);
    EXPECT_FALSE(late_->failed());
  }

  QueryCluster cluster_{3, true};
  std::shared_ptr<Query> late_;
};

TEST_F(EndedElsewhere, a_query_tells_who_waits_for_its_rows_why_it_failed) {
  cluster_[1].await(*late_, 2, 7, std::vector<uint32_t>{4}, {});
  cluster_.deliver(1, 2);
  cluster_.deliver(2, 1);
  expect_error(late_->cause(), kCancelled.code(), {kCancelled.message()});
}

TEST_F(EndedElsewhere, a_query_tells_who_ends_it_why_it_failed) {
  cluster_[1].end(*late_, 2);
  for (const uint32_t n : {0u, 1u}) cluster_[n].on_peer_joined(1 - n, 1001 - n);
  cluster_.deliver(1, 0);
  cluster_.deliver(0, 1);
  EXPECT_TRUE(late_->outcome_known());
  expect_error(late_->outcome(), kCancelled.code(), {kCancelled.message()});
}

TEST_F(EndedElsewhere, a_query_has_only_ended_when_many_have_failed_since) {
  for (size_t i = 0; i < EndedQueries::kFailureLimit; ++i) {
    const QueryId id = cluster_[2].begin();
    EXPECT_TRUE(is_ok(cluster_[2].declare(id, {4})));
    const auto query = cluster_.use(2, id);
    cluster_[2].fail(*query, kLost);
    cluster_[2].end(*query, 4);
  }
  cluster_[1].await(*late_, 2, 7, std::vector<uint32_t>{4}, {});
  cluster_.deliver(1, 2);
  cluster_.deliver(2, 1);
  expect_error(late_->cause(), Code::query_ended, {"node 2"});
}

}  // namespace
}  // namespace faro::shuffle
