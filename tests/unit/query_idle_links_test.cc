// Links that no query needs are let go: who asks, who agrees, and what begins meanwhile. Messages are delivered by hand, in every
// order that matters; node 0 is the one that asks.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "unit/query_cluster.h"

namespace faro::shuffle {
namespace {

using test::expect_error;
using test::is_ok;
using wire::RestStep;

constexpr base::Nanoseconds kIdle = 5 * kUnopened;
constexpr QueryTimeouts kIdling{
    .unopened_ns = kUnopened, .link_ns = 100 * kUnopened, .idle_ns = kIdle};
const Status kGone(Code::peer_lost, "node was lost");

class IdleLinks : public testing::Test {
 protected:
  Table& at(uint32_t node) { return cluster_[node]; }
  QueryCluster::Node& node(uint32_t number) { return cluster_.nodes[number]; }
  std::deque<QueryMessage>& wire(uint32_t from, uint32_t to) { return cluster_.wires[from][to]; }
  /// Node 0 has been idle for long enough, and asks.
  void ask() {
    at(0).on_tick(now_);
    at(0).on_tick(now_ += kIdle);
    ASSERT_EQ(steps(0, 1), std::vector<RestStep>{RestStep::ask});
  }
  std::vector<RestStep> steps(uint32_t from, uint32_t to) {
    std::vector<RestStep> steps;
    for (const QueryMessage& message : wire(from, to)) {
      if (message.kind == QueryMessageKind::rest)
        steps.push_back(static_cast<RestStep>(message.first));
    }
    return steps;
  }
  void say(uint32_t from, uint32_t to, uint32_t step) {
    QueryMessage message;
    message.kind = QueryMessageKind::rest;
    message.first = step;
    at(to).on_message(from, message);
  }
  /// Up to node 0's end of the link.
  void agree() {
    ask();
    cluster_.deliver(0, 1);
    ASSERT_EQ(steps(1, 0), std::vector<RestStep>{RestStep::yes});
    cluster_.deliver(1, 0);
  }
  /// The link is no more. What was on its way is gone.
  void expect_let_go() {
    EXPECT_FALSE(at(0).on_peer_lost(1, kGone)) << "it was let go";
    EXPECT_FALSE(at(1).on_peer_lost(0, kGone)) << "it was let go";
    EXPECT_TRUE(wire(0, 1).empty() && wire(1, 0).empty());
  }
  /// The two processes are linked anew.
  void link_again() {
    for (QueryCluster::Node& each : cluster_.nodes) each.held.clear();  // it is another link
    at(0).on_peer_joined(1, 1001);
    at(1).on_peer_joined(0, 1000);
  }
  void declare(uint32_t at_node, const QueryId& id) {
    EXPECT_TRUE(is_ok(at(at_node).declare(id, {0, 1, 2, 3})));
  }
  /// Both nodes use it, end it, and it is done.
  void expect_done(const QueryId& id) {
    const auto first = cluster_.use(0, id), second = cluster_.use(1, id);
    cluster_.end(0, *first);
    cluster_.end(1, *second);
    cluster_.deliver_all();
    EXPECT_TRUE(first->outcome_known() && first->outcome().ok()) << first->outcome().to_string();
    EXPECT_TRUE(second->outcome_known() && second->outcome().ok()) << second->outcome().to_string();
    EXPECT_EQ(at(0).running_count() + at(1).running_count(), 0u);
  }

  base::Nanoseconds now_ = 10;
  QueryCluster cluster_{2, true, kIdling};
};

TEST_F(IdleLinks, are_let_go_by_both_when_nothing_has_needed_them_for_so_long) {
  at(0).on_tick(now_);
  at(0).on_tick(now_ + kIdle - 1);
  EXPECT_TRUE(wire(0, 1).empty());
  EXPECT_TRUE(node(0).held.empty());
  at(0).on_tick(now_ + kIdle);
  EXPECT_EQ(steps(0, 1), std::vector<RestStep>{RestStep::ask});
  EXPECT_TRUE(node(0).held.contains(1)) << "no row of a query that begins now may pass";
  cluster_.deliver(0, 1);
  EXPECT_EQ(steps(1, 0), std::vector<RestStep>{RestStep::yes});
  EXPECT_TRUE(node(1).held.contains(0));
  EXPECT_TRUE(node(0).released.empty());
  cluster_.deliver(1, 0);
  EXPECT_EQ(node(0).released, std::vector<uint32_t>{1}) << "it ends the link";
  EXPECT_TRUE(node(1).released.empty()) << "the other one waits for that";
  for (const uint32_t n : {0u, 1u}) EXPECT_EQ(node(n).peers->view(1 - n).state, PeerState::agreed);
  expect_let_go();
  EXPECT_TRUE(node(0).wanted.empty() && node(1).wanted.empty()) << "nobody needs it";
  // The next query has it made again, from either side.
  const QueryId id = at(0).begin();
  declare(0, id);
  declare(1, id);
  EXPECT_EQ(node(0).wanted, std::vector<uint32_t>{1});
  EXPECT_EQ(node(1).wanted, std::vector<uint32_t>{0});
  link_again();
  expect_done(id);
}

TEST_F(IdleLinks, are_asked_for_by_the_lower_number_only) {
  at(1).on_tick(now_);
  at(1).on_tick(now_ + 3 * kIdle);
  EXPECT_TRUE(wire(1, 0).empty());
  EXPECT_TRUE(node(1).held.empty());
  say(1, 0, 0);  // a node that asks all the same gets no answer
  EXPECT_TRUE(wire(0, 1).empty());
  EXPECT_TRUE(node(0).held.empty());
}

TEST_F(IdleLinks, are_asked_for_once_until_there_is_an_answer) {
  ask();
  at(0).on_tick(now_ += 3 * kIdle);
  EXPECT_EQ(wire(0, 1).size(), 1u);
}

TEST(IdleLinksOfAFixedList, stay) {
  QueryCluster cluster(2, false, kIdling);
  cluster[0].on_tick(10);
  cluster[0].on_tick(10 + 3 * kIdle);
  EXPECT_TRUE(cluster.wires[0][1].empty());
  QueryMessage asks;
  asks.kind = QueryMessageKind::rest;
  cluster[1].on_message(0, asks);
  ASSERT_EQ(cluster.wires[1][0].size(), 1u);
  EXPECT_EQ(cluster.wires[1][0][0].first, static_cast<uint32_t>(RestStep::no));
  EXPECT_TRUE(cluster.nodes[1].held.empty());
}

TEST(IdleLinksWithoutATime, stay) {
  QueryCluster cluster(2, true);
  cluster[0].on_tick(10);
  cluster[0].on_tick(10 + 100 * kIdle);
  EXPECT_TRUE(cluster.wires[0][1].empty());
}

// It is a query of its own, or one that a peer has spoken of and that is not declared yet.
TEST_F(IdleLinks, are_not_idle_while_a_query_is_known_that_may_need_them) {
  const QueryId own = at(0).begin();
  declare(0, own);
  at(0).on_tick(now_);
  at(0).on_tick(now_ += 2 * kIdle);
  EXPECT_TRUE(wire(0, 1).empty());
  declare(1, own);
  expect_done(own);
  const QueryId theirs = at(1).begin();
  EXPECT_NE(at(0).hear(theirs, 1), nullptr);
  at(0).on_tick(now_);
  EXPECT_TRUE(wire(0, 1).empty());
  declare(1, theirs);
  declare(0, theirs);
  expect_done(theirs);
  // From now on it counts.
  at(0).on_tick(now_ += 1);
  at(0).on_tick(now_ += kIdle - 1);
  EXPECT_TRUE(wire(0, 1).empty());
  at(0).on_tick(now_ += 1);
  EXPECT_EQ(steps(0, 1), std::vector<RestStep>{RestStep::ask});
}

TEST_F(IdleLinks, that_the_other_side_needs_go_on) {
  const QueryId id = at(1).begin();
  declare(1, id);
  ask();
  cluster_.deliver(0, 1);
  EXPECT_EQ(steps(1, 0), std::vector<RestStep>{RestStep::no});
  EXPECT_TRUE(node(1).held.empty());
  const int alerts = node(0).alerts;
  cluster_.deliver(1, 0);
  EXPECT_TRUE(node(0).held.empty());
  EXPECT_GT(node(0).alerts, alerts) << "who waits for room has it again";
  declare(0, id);
  EXPECT_TRUE(node(0).wanted.empty()) << "it stands";
  expect_done(id);
  EXPECT_TRUE(at(0).on_peer_lost(1, kGone)) << "a loss is a loss";
}

TEST_F(IdleLinks, that_are_kept_for_another_reason_go_on) {
  node(1).keeps_links = true;
  ask();
  cluster_.deliver(0, 1);
  EXPECT_EQ(steps(1, 0), std::vector<RestStep>{RestStep::no});
  cluster_.deliver(1, 0);
  node(0).keeps_links = true;
  at(0).on_tick(now_ += 1);
  at(0).on_tick(now_ += 2 * kIdle);
  EXPECT_TRUE(wire(0, 1).empty()) << "not even asked for";
  EXPECT_TRUE(node(0).held.empty());
}

// The query begins when the question is on its way, and the other side needs the link for another one.
TEST_F(IdleLinks, carry_what_was_kept_meanwhile_when_they_go_on) {
  const QueryId theirs = at(1).begin();
  declare(1, theirs);
  ask();
  const QueryId own = at(0).begin();
  declare(0, own);
  const auto query = cluster_.use(0, own);
  at(0).stop(*query, 7, 0, std::vector<uint32_t>{2});
  EXPECT_EQ(wire(0, 1).size(), 1u) << "only the question";
  at(0).on_tick(now_ += 1);
  cluster_.deliver(0, 1);
  cluster_.deliver(1, 0);
  ASSERT_EQ(wire(0, 1).size(), 1u);
  EXPECT_EQ(wire(0, 1)[0].kind, QueryMessageKind::stop);
  declare(1, own);
  cluster_.deliver_all();
  declare(0, theirs);
  cluster_.end(0, *query);
  cluster_.end(1, *cluster_.use(1, own));
  cluster_.deliver_all();
  EXPECT_TRUE(query->outcome_known() && query->outcome().ok());
  expect_done(theirs);
}

// An answer to something that came while the question was on its way belongs to no query that waits.
TEST_F(IdleLinks, carry_confirmations_too_when_they_go_on) {
  const QueryId id = at(1).begin();
  declare(1, id);
  declare(0, id);
  const auto first = cluster_.use(0, id), second = cluster_.use(1, id);
  cluster_.end(0, *first);
  cluster_.end(1, *second);
  cluster_.deliver(0, 1);  // ENDED: node 1 decides
  ASSERT_EQ(wire(1, 0).size(), 1u);
  const QueryMessage outcome = wire(1, 0)[0];
  cluster_.deliver(1, 0);
  wire(0, 1).clear();  // the confirmation
  ask();
  at(0).on_message(1, outcome);  // said again
  at(0).on_tick(now_ += 1);
  cluster_.deliver(0, 1);
  EXPECT_EQ(steps(1, 0), std::vector<RestStep>{RestStep::no}) << "it waits for the confirmation";
  cluster_.deliver_all();
  EXPECT_EQ(at(1).running_count(), 0u);
}

TEST_F(IdleLinks, are_made_again_for_a_query_that_began_while_the_question_was_on_its_way) {
  ask();
  const QueryId id = at(0).begin();
  declare(0, id);
  const auto query = cluster_.use(0, id);
  at(0).stop(*query, 7, 0, std::vector<uint32_t>{2});
  EXPECT_EQ(node(0).wanted, std::vector<uint32_t>{1});
  cluster_.deliver(0, 1);
  cluster_.deliver(1, 0);
  node(0).wanted.clear();
  expect_let_go();
  EXPECT_EQ(node(0).wanted, std::vector<uint32_t>{1}) << "now it can be made";
  declare(1, id);
  at(0).on_tick(now_ += 1);
  link_again();
  ASSERT_EQ(wire(0, 1).size(), 1u);
  EXPECT_EQ(wire(0, 1)[0].kind, QueryMessageKind::stop);
  expect_done(id);
}

TEST_F(IdleLinks, are_made_again_for_a_query_that_began_when_the_other_side_had_agreed) {
  ask();
  cluster_.deliver(0, 1);
  const QueryId id = at(1).begin();
  declare(1, id);
  const auto query = cluster_.use(1, id);
  EXPECT_EQ(wire(1, 0).size(), 1u) << "only the answer";
  cluster_.deliver(1, 0);
  node(1).wanted.clear();
  expect_let_go();
  EXPECT_EQ(node(1).wanted, std::vector<uint32_t>{0});
  declare(0, id);
  link_again();
  EXPECT_FALSE(query->failed());
  expect_done(id);
}

// At both sides, each before it knows of the other's.
TEST_F(IdleLinks, are_made_again_for_queries_that_began_at_both_sides) {
  ask();
  const QueryId first = at(0).begin();
  declare(0, first);
  cluster_.deliver(0, 1);
  const QueryId second = at(1).begin();
  declare(1, second);
  cluster_.deliver(1, 0);
  expect_let_go();
  declare(1, first);
  declare(0, second);
  link_again();
  const auto use = [&](uint32_t n) {
    for (const QueryId& id : {first, second}) cluster_.end(n, *cluster_.use(n, id));
  };
  use(0);
  use(1);
  cluster_.deliver_all();
  EXPECT_EQ(at(0).running_count() + at(1).running_count(), 0u);
  EXPECT_TRUE(node(0).told_failed.empty() && node(1).told_failed.empty());
}

// The answer has not come: the peer may have died.
TEST_F(IdleLinks, that_end_before_both_have_agreed_are_lost) {
  ask();
  const QueryId id = at(0).begin();
  declare(0, id);
  const auto query = cluster_.use(0, id);
  EXPECT_TRUE(at(0).on_peer_lost(1, kGone));
  expect_error(query->cause(), Code::peer_lost, {"node was lost"});
  say(1, 0, 1);  // too late
  EXPECT_TRUE(node(0).released.empty());
}

TEST_F(IdleLinks, are_let_go_by_whoever_has_agreed_however_they_end) {
  ask();
  cluster_.deliver(0, 1);
  EXPECT_FALSE(at(1).on_peer_lost(0, kGone));
  EXPECT_FALSE(at(1).on_peer_lost(0, kGone)) << "it is told again";
  (void)node(1).peers->on(0, session::Peers::Event::admitted);
  EXPECT_TRUE(at(1).on_peer_lost(0, kGone)) << "that is the next link";
}

TEST_F(IdleLinks, are_not_touched_by_what_nobody_asked) {
  for (const uint32_t step : {1u, 2u, 3u, 0xffff'ffffu}) {
    say(1, 0, step);
    say(0, 1, step);
  }
  EXPECT_TRUE(wire(0, 1).empty() && wire(1, 0).empty());
  EXPECT_TRUE(node(0).released.empty() && node(1).released.empty());
  say(0, 1, 0);
  say(0, 1, 0);
  EXPECT_EQ(wire(1, 0).size(), 1u) << "it has agreed already";
}

TEST_F(IdleLinks, do_not_make_ended_queries_live_again) {
  const QueryId id = at(1).begin();
  declare(1, id);
  declare(0, id);
  expect_done(id);
  agree();
  expect_let_go();
  expect_error(at(0).declare(id, {0, 1, 2, 3}), Code::query_ended, {});
  link_again();
  expect_error(at(0).declare(id, {0, 1, 2, 3}), Code::query_ended, {});
}

TEST_F(IdleLinks, may_lead_to_another_process_next) {
  const QueryId old = at(1).begin();
  agree();
  expect_let_go();
  EXPECT_TRUE(is_ok(at(0).declare(old, {0, 1, 2, 3}))) << "it may come back";
  const auto query = cluster_.use(0, old);
  at(0).on_peer_joined(1, 2001);
  expect_error(query->cause(), Code::peer_lost, {"another process"});
}

TEST_F(IdleLinks, of_a_node_that_is_removed_are_forgotten) {
  agree();
  expect_let_go();
  at(0).on_node_removed(1);
  at(0).on_node_added(1);
  at(0).on_peer_joined(1, 2001);
  EXPECT_TRUE(at(0).on_peer_lost(1, kGone));
}

// The drain finds the link idle, and both reasons hold.
TEST_F(IdleLinks, of_a_drained_node_are_let_go_for_good) {
  agree();
  at(0).drain(1);
  EXPECT_TRUE(at(0).is_drained(1));
  EXPECT_FALSE(at(0).on_peer_lost(1, kGone)) << "it rests";
  EXPECT_TRUE(at(0).is_drained(1)) << "still";
}

// --- until the answer has come, the peer is there: what it says counts, and what is to be said to it is kept

// Its vote was on its way when this node asked.
TEST_F(IdleLinks, that_are_asked_for_have_the_peer_told_of_an_outcome) {
  ask();
  const QueryId id = at(0).begin();
  EXPECT_TRUE(is_ok(at(1).declare(id, {2, 3})));
  const auto query = cluster_.use(1, id);
  cluster_.end(1, *query);
  EXPECT_TRUE(is_ok(at(0).declare(id, {2, 3})));
  cluster_.deliver(0, 1);
  cluster_.deliver(1, 0);
  cluster_.deliver_all();
  EXPECT_TRUE(query->outcome_known() && query->outcome().ok());
  EXPECT_EQ(at(0).running_count() + at(1).running_count(), 0u);
}

TEST_F(IdleLinks, that_are_asked_for_keep_a_failure_once) {
  ask();
  const QueryId id = at(0).begin();
  declare(1, id);
  declare(0, id);
  const auto here = cluster_.use(0, id), there = cluster_.use(1, id);
  EXPECT_TRUE(is_ok(at(0).cancel(id, kCancelled)));
  at(0).on_tick(now_ += 1);
  cluster_.deliver(0, 1);
  cluster_.deliver(1, 0);
  ASSERT_EQ(wire(0, 1).size(), 1u);
  cluster_.deliver_all();
  expect_error(there->cause(), Code::query_cancelled, {"enough"});
}

TEST_F(IdleLinks, that_are_asked_for_are_needed_by_what_the_peer_has_begun) {
  for (const uint32_t drained : {1u, 0u}) {
    at(0).on_tick(now_);
    at(0).on_tick(now_ += 2 * kIdle);
    const QueryId id = at(1).begin();
    declare(1, id);
    at(0).drain(drained);
    EXPECT_TRUE(node(0).released.empty()) << "drained: " << drained;
    cluster_.deliver_all();
    declare(0, id);
    expect_done(id);
  }
}

TEST(IdleLinksOfThree, that_are_asked_for_may_need_a_third_node) {
  QueryCluster cluster(3, true, kIdling);
  cluster[0].on_tick(10);
  cluster[0].on_tick(10 + kIdle);
  EXPECT_EQ(cluster.nodes[0].held, (std::set<uint32_t>{1, 2}));
  const QueryId id = cluster[1].begin();
  const std::vector<uint32_t> workers = {0, 1, 2, 3, 4, 5};
  EXPECT_TRUE(is_ok(cluster[1].declare(id, workers)));
  cluster[0].drain(2);
  EXPECT_TRUE(cluster.nodes[0].released.empty());
}

/// Nodes 0 and 1 have let their link go; node 2, which both are linked with, speaks to node 1 of a query that node 0 has begun.
class IdleLinksAndTheirIssuer : public testing::Test {
 protected:
  IdleLinksAndTheirIssuer() {
    cluster_[0].on_tick(10);
    cluster_[0].on_tick(10 + kIdle);
    cluster_.deliver(0, 1);
    cluster_.deliver(1, 0);
    EXPECT_FALSE(cluster_[0].on_peer_lost(1, kGone));
    EXPECT_FALSE(here().on_peer_lost(0, kGone));
  }
  Table& here() { return cluster_[1]; }
  QueryCluster cluster_{3, true, kIdling};
  QueryId id_ = cluster_[0].begin();
};

TEST_F(IdleLinksAndTheirIssuer, are_made_again_for_workers_that_have_its_end_to_tell) {
  const auto heard = here().hear(id_, 2);
  ASSERT_NE(heard, nullptr);
  here().fail(*heard, Status(Code::query_failed, "a row is bad"));
  const auto query = cluster_.use(1, id_);
  EXPECT_TRUE(query->failed());
  EXPECT_EQ(cluster_.nodes[1].wanted, std::vector<uint32_t>{0});
  here().on_node_removed(0);
  cluster_.end(1, *query);
  EXPECT_TRUE(query->outcome_known()) << "nobody else can tell it";
  EXPECT_EQ(here().running_count(), 0u);
}

TEST_F(IdleLinksAndTheirIssuer, leave_nothing_of_its_query_when_it_is_removed) {
  EXPECT_NE(here().hear(id_, 2), nullptr);
  EXPECT_EQ(here().running_count(), 1u);
  here().on_node_removed(0);
  EXPECT_EQ(here().running_count(), 0u);
}

TEST_F(IdleLinks, that_are_asked_for_name_the_process_that_is_drained) {
  declare(1, at(1).begin());
  ask();
  at(0).drain(1);
  EXPECT_EQ(wire(0, 1).size(), 1u) << "only the question";
  cluster_.deliver(0, 1);
  cluster_.deliver(1, 0);
  ASSERT_EQ(wire(0, 1).size(), 1u);
  EXPECT_EQ(wire(0, 1)[0].kind, QueryMessageKind::released);
  EXPECT_EQ(wire(0, 1)[0].number, 1001u);
}

TEST_F(IdleLinks, that_are_asked_for_carry_no_query_of_a_former_process) {
  declare(1, at(1).begin());
  ask();
  const QueryId old{1, 999, 1, 0};
  expect_error(at(0).declare(old, {0, 1, 2, 3}), Code::peer_lost, {"another process"});
  expect_error(at(0).cancel(old, kCancelled), Code::peer_lost, {"another process"});
  cluster_.deliver_all();
  EXPECT_EQ(at(0).running_count(), 0u);
}

// --- a query that its issuer has failed while it was not linked with who takes part

class CancelledApart : public IdleLinks {
 protected:
  CancelledApart() {
    agree();
    expect_let_go();
    id_ = at(0).begin();
    declare(1, id_);
    query_ = cluster_.use(1, id_);
    EXPECT_TRUE(is_ok(at(0).cancel(id_, kCancelled)));
    link_again();
    cluster_.deliver_all();
    EXPECT_FALSE(query_->failed()) << "nobody has told it";
  }
  QueryId id_;
  std::shared_ptr<Query> query_;
};

TEST_F(CancelledApart, is_told_when_its_part_has_ended) {
  cluster_.end(1, *query_);
  cluster_.deliver_all();
  expect_error(query_->cause(), Code::query_cancelled, {"enough"});
}

TEST_F(CancelledApart, is_told_when_it_waits_for_the_issuer) {
  at(1).await(*query_, 2, 7, std::vector<uint32_t>{0}, {});
  cluster_.deliver_all();
  expect_error(query_->cause(), Code::query_cancelled, {"enough"});
}

// --- time limits

TEST_F(IdleLinks, whose_peer_does_not_answer_in_time_end) {
  ask();
  at(0).on_tick(now_ += kIdling.link_ns - 1);
  EXPECT_TRUE(node(0).offenders.empty());
  at(0).on_tick(now_ += 1);
  ASSERT_EQ(node(0).offenders.size(), 1u);
  EXPECT_EQ(node(0).offenders[0].first, 1u);
  expect_error(node(0).offenders[0].second, Code::protocol_error,
               {"did not answer", "connect.timeout_ms = 100000"});
  at(0).on_tick(now_ += 1);
  EXPECT_EQ(node(0).offenders.size(), 1u);
  EXPECT_TRUE(at(0).on_peer_lost(1, kGone)) << "nobody has agreed";
}

TEST_F(IdleLinks, that_the_peer_does_not_end_in_time_end) {
  ask();
  cluster_.deliver(0, 1);
  at(1).on_tick(now_);
  at(1).on_tick(now_ += kIdling.link_ns - 1);
  EXPECT_TRUE(node(1).offenders.empty());
  at(1).on_tick(now_ += 1);
  ASSERT_EQ(node(1).offenders.size(), 1u);
  expect_error(node(1).offenders[0].second, Code::protocol_error,
               {"did not end", "connect.timeout_ms = 100000"});
  EXPECT_FALSE(at(1).on_peer_lost(0, kGone)) << "both have agreed";
}

// Ticks may come more rarely than the limit: a step since the last one is not an old one.
TEST_F(IdleLinks, whose_peer_was_told_between_two_ticks_has_its_time_from_the_next_one) {
  at(1).on_tick(now_);
  ask();
  cluster_.deliver(0, 1);
  at(1).on_tick(now_ += kIdling.link_ns);
  EXPECT_TRUE(node(1).offenders.empty()) << "it was asked just now";
  cluster_.deliver(1, 0);
  at(0).on_tick(now_ += 1);
  EXPECT_TRUE(node(0).offenders.empty()) << "it has its answer";
  at(1).on_tick(now_ += kIdling.link_ns);
  EXPECT_EQ(node(1).offenders.size(), 1u);
}

TEST_F(IdleLinks, whose_peer_was_not_told_for_want_of_memory_do_not_end) {
  const auto none = [] { throw std::bad_alloc(); };
  at(0).on_tick(now_);
  node(0).sending = none;
  at(0).on_tick(now_ += kIdle);
  node(0).sending = none;
  at(0).on_tick(now_ += kIdling.link_ns);
  EXPECT_TRUE(wire(0, 1).empty());
  at(0).on_tick(now_ += kIdling.link_ns);
  EXPECT_EQ(steps(0, 1), std::vector<RestStep>{RestStep::ask});
  EXPECT_TRUE(node(0).offenders.empty());
  cluster_.deliver(0, 1);
  cluster_.deliver(1, 0);
  expect_let_go();
}

TEST_F(IdleLinks, that_have_ended_keep_nothing_of_a_query_but_that_it_has_failed) {
  agree();
  expect_let_go();
  const QueryId id = at(0).begin();
  declare(0, id);
  const auto query = cluster_.use(0, id);
  at(0).stop(*query, 7, 0, std::vector<uint32_t>{2});
  at(0).on_tick(now_ += 1);
  at(0).on_tick(now_ += kIdling.link_ns);
  EXPECT_TRUE(query->failed());
  at(0).on_tick(now_ += 1);
  link_again();
  ASSERT_EQ(wire(0, 1).size(), 1u) << "not that a worker has stopped";
  EXPECT_EQ(wire(0, 1).front().kind, QueryMessageKind::fail);
}

// Rows of node 1 come to node 2 when the query has ended there and the link with its issuer, node 0, was let go.
TEST(IdleLinksOfAnIssuer, keep_nobody_from_being_told_why_a_query_failed) {
  const Status cancelled(Code::query_cancelled, "nobody waits for it");
  QueryCluster cluster(3, true, kIdling);
  const QueryId id = cluster[0].begin();
  std::vector<std::shared_ptr<Query>> parts;
  for (const uint32_t n : {0u, 1u, 2u}) EXPECT_TRUE(is_ok(cluster[n].declare(id, {0, 2, 4})));
  for (const uint32_t n : {0u, 1u, 2u}) parts.push_back(cluster.use(n, id));
  EXPECT_TRUE(is_ok(cluster[0].cancel(id, cancelled)));
  for (const uint32_t n : {0u, 1u, 2u}) cluster[n].end(*parts[n], 2 * n);
  cluster.deliver_all();
  EXPECT_EQ(cluster[2].running_count(), 0u);
  for (const base::Nanoseconds now : {base::Nanoseconds{10}, 10 + kIdle}) cluster[0].on_tick(now);
  cluster.deliver_all();
  for (const auto& [one, other] : {std::pair(0u, 2u), std::pair(2u, 0u)})
    EXPECT_FALSE(cluster[one].on_peer_lost(other, kGone)) << "it was let go";

  EXPECT_EQ(cluster[2].hear(id, 1), nullptr);
  ASSERT_EQ(cluster.wires[2][1].size(), 1u);
  const QueryMessage& told = cluster.wires[2][1].front();
  EXPECT_EQ(told.second, static_cast<int32_t>(Code::query_cancelled));
  EXPECT_NE(told.text.find("nobody waits for it"), std::string::npos) << told.text;
}

}  // namespace
}  // namespace faro::shuffle
