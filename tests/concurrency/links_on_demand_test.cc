// Sessions whose nodes are linked when a query needs them (native/session/README.md, "Nodes that come and go"): what is known
// of the others is a list, or what they were added with. Real sessions in one process, over sockets and shared memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/certificates.h"
#include "support/changing_cluster.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// "tls": tcp, with certificates.
class LinksOnDemand : public testing::TestWithParam<std::string> {
 protected:
  static SettingList settings() {
    SettingList settings = transport_settings(GetParam());
    settings.emplace_back("connect.wait_for", "none");
    settings.emplace_back("liveness.timeout_ms", "1000");
    return settings;
  }
  /// All know all, and nobody is linked.
  void open_all(const std::set<uint32_t>& nodes, const SettingList& more = {}) {
    for (const uint32_t n : nodes) cluster_.open(n, nodes, more);
  }
  /// The other nodes that a node is linked with.
  std::set<uint32_t> linked(uint32_t node) {
    std::set<uint32_t> linked;
    for (const LinkMetrics& link : cluster_[node].metrics().links) {
      if (link.connected && link.node != node) linked.insert(link.node);
    }
    return linked;
  }
  /// What a worker is told of a query that it only ends.
  Status cause_of(uint32_t worker, const QueryId& id) {
    Status cause;
    EXPECT_EQ(end_query(cluster_.worker(worker), id, cause), Outcome::failed);
    return cause;
  }

  Watchdog watchdog_{seconds(50), [] { return std::string("a session that links on demand"); }};
  ChangingCluster cluster_{settings()};
};

INSTANTIATE_TEST_SUITE_P(Transports, LinksOnDemand,
                         testing::ValuesIn(transports_to_test({"tcp", "shm"})),
                         [](const auto& each) { return each.param; });
INSTANTIATE_TEST_SUITE_P(Encrypted, LinksOnDemand, testing::Values("tls"),
                         [](const auto& each) { return each.param; });

TEST_P(LinksOnDemand, a_query_has_those_linked_that_it_needs_and_no_others) {
  open_all({0, 1, 2, 3, 4});
  for (const uint32_t n : {0u, 1u, 2u, 3u, 4u}) EXPECT_EQ(linked(n), std::set<uint32_t>{});
  cluster_.expect_working({1, 2, 4}, 1'000);
  EXPECT_EQ(linked(0), std::set<uint32_t>{});
  EXPECT_EQ(linked(1), (std::set<uint32_t>{2, 4}));
  EXPECT_EQ(linked(2), (std::set<uint32_t>{1, 4}));
  EXPECT_EQ(linked(3), std::set<uint32_t>{});
  EXPECT_EQ(linked(4), (std::set<uint32_t>{1, 2}));
  // The next one finds some of its links.
  cluster_.expect_working({0, 1, 2}, 1'000);
  EXPECT_EQ(linked(0), (std::set<uint32_t>{1, 2}));
  EXPECT_EQ(linked(4), (std::set<uint32_t>{1, 2}));
}

// All pairs, each from both sides at the same time, by several queries.
TEST_P(LinksOnDemand, links_that_both_sides_need_at_once_are_made_once) {
  const std::set<uint32_t> all = {0, 1, 2, 3};
  open_all(all);
  std::vector<QueryId> ids;
  for (const uint32_t issuer : all) ids.push_back(cluster_[issuer].begin_query());
  std::vector<std::thread> threads;
  for (const uint32_t n : all) {
    threads.emplace_back([&, n] {
      for (const QueryId& id : ids)
        EXPECT_TRUE(is_ok(cluster_[n].declare_query(id, ChangingCluster::workers_of(all))));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const QueryId& id : ids) cluster_.run(id, all, 100);
  for (const uint32_t n : all) {
    EXPECT_EQ(linked(n).size(), 3u);
    EXPECT_EQ(cluster_.events(n).count("lost"), 0u);
  }
}

// The node with the lower number needs the link, the other one does nothing but know it.
TEST_P(LinksOnDemand, one_side_alone_makes_the_link) {
  open_all({0, 1});
  EXPECT_FALSE(cluster_[0].has_node(1));
  EXPECT_TRUE(is_ok(cluster_[0].await_node(1)));
  EXPECT_TRUE(cluster_[0].has_node(1));
  cluster_.expect_working({0, 1});
}

TEST_P(LinksOnDemand, a_query_waits_for_a_node_that_opens_its_session_later) {
  cluster_.open(0, {0, 1});
  const QueryId id = cluster_[0].begin_query();
  const std::vector<uint32_t> workers = ChangingCluster::workers_of({0, 1});
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, workers)));
  // Its rings are as full ones.
  Shuffle early = cluster_.open_shuffle(0, id);
  const uint64_t row = 0;
  const auto bytes = std::as_bytes(std::span(&row, 1));
  EXPECT_EQ(early.sender()->send(2, bytes, Wait::none()), Outcome::would_wait);
  cluster_.worker(0).release_ownership();
  cluster_.open(1, {0, 1});
  EXPECT_TRUE(is_ok(cluster_[1].declare_query(id, workers)));
  std::vector<std::thread> threads;
  for (const uint32_t w : workers) {
    threads.emplace_back([&, w] {
      Shuffle shuffle = w == 0 ? std::move(early) : cluster_.open_shuffle(w, id);
      cluster_.run_worker(id, std::move(shuffle), w, 1'000, workers.size());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(LinksOnDemand, an_issuer_without_workers_is_linked_with_those_that_have_some) {
  open_all({0, 1, 2, 3});
  const std::vector<uint32_t> workers = ChangingCluster::workers_of({0, 3});
  const QueryId id = cluster_[1].begin_query();
  // The participants first, also for those whose link with the issuer has to wait.
  for (const uint32_t n : {0u, 3u, 1u}) EXPECT_TRUE(is_ok(cluster_[n].declare_query(id, workers)));
  cluster_.run(id, {0, 3}, 100);
  EXPECT_EQ(linked(1), (std::set<uint32_t>{0, 3}));
  EXPECT_EQ(linked(2), std::set<uint32_t>{});
}

TEST_P(LinksOnDemand, a_query_that_fails_before_its_nodes_are_linked_fails_everywhere) {
  open_all({0, 1, 2});
  const QueryId id = cluster_.begin_query({0, 1, 2});
  EXPECT_TRUE(is_ok(cluster_[1].cancel_query(id, "not wanted any more")));
  for (const uint32_t w : ChangingCluster::workers_of({0, 1, 2})) {
    expect_error(cause_of(w, id), Code::query_cancelled, {"not wanted any more"});
    cluster_.worker(w).release_ownership();
  }
}

TEST_P(LinksOnDemand, a_node_that_is_not_there_fails_its_queries_in_time_and_no_others) {
  open_all({0, 1}, {{"connect.timeout_ms", "400"}});
  cluster_.add(5, {0, 1});
  const QueryId id = cluster_[0].begin_query();
  for (const uint32_t n : {0u, 1u})
    EXPECT_TRUE(is_ok(cluster_[n].declare_query(id, ChangingCluster::workers_of({0, 1, 5}))));
  cluster_.expect_working({0, 1}, 100);
  for (const uint32_t w : ChangingCluster::workers_of({0, 1})) {
    expect_error(cause_of(w, id), Code::peer_lost,
                 {"node 5", "connect.timeout_ms = 400", cluster_.address(5)});
    cluster_.worker(w).release_ownership();
  }
  cluster_.expect_working({0, 1}, 100);
  for (const uint32_t n : {0u, 1u}) EXPECT_EQ(cluster_.events(n).count("lost"), 0u);
  // It comes after all.
  cluster_.open(5, {0, 1, 5});
  cluster_.expect_working({0, 1, 5}, 100);
}

// Node 1 dials, and fails: node 0 is not where node 1 was told.
TEST_P(LinksOnDemand, who_only_asks_for_a_link_is_told_why_the_other_side_cannot_make_it) {
  cluster_.open(0, {0, 1}, {{"connect.timeout_ms", "2000"}});
  cluster_.open(1, {1});
  EXPECT_TRUE(is_ok(Nodes(cluster_[1]).add({0, cluster_.address(5)})));
  const QueryId id = cluster_[0].begin_query();
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, ChangingCluster::workers_of({0, 1}))));
  expect_error(cause_of(0, id), Code::peer_lost,
               {"node 1", "dials that link itself", cluster_.address(5)});
  cluster_.worker(0).release_ownership();
}

TEST_P(LinksOnDemand, an_issuer_that_is_not_there_fails_its_queries_in_time) {
  cluster_.open(0, {0, 1}, {{"connect.timeout_ms", "400"}});
  const QueryId id{1, 17, 1, 0};
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, ChangingCluster::workers_of({0}))));
  expect_error(cause_of(0, id), Code::peer_lost, {"node 1", "connect.timeout_ms = 400"});
}

TEST_P(LinksOnDemand, a_query_of_another_process_than_the_one_that_is_there_is_lost) {
  open_all({0, 1});
  QueryId id = cluster_[1].begin_query();
  ++id.incarnation;
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, ChangingCluster::workers_of({0, 1}))));
  expect_error(cause_of(0, id), Code::peer_lost, {"node 1", "another process"});
  cluster_.worker(0).release_ownership();
  cluster_.expect_working({0, 1});
}

// Links that were made at open are alike: the node would have to come back.
TEST_P(LinksOnDemand, a_node_that_was_lost_is_not_waited_for) {
  open_all({0, 1, 2});
  cluster_.expect_working({0, 1, 2});
  cluster_.close(2);
  EXPECT_EQ(cluster_.events(0).await("left"), "left 2");
  const QueryId id = cluster_[0].begin_query();
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, ChangingCluster::workers_of({0, 2}))));
  expect_error(cause_of(0, id), Code::peer_lost, {"node 2", "closed its session"});
  cluster_.worker(0).release_ownership();
  // Whoever waits for it looks for it.
  cluster_.open(2, {0, 1, 2});
  for (const uint32_t n : {0u, 1u}) EXPECT_TRUE(is_ok(cluster_[n].await_node(2)));
  EXPECT_EQ(cluster_.events(0).await("returned 2", 2), "returned 2");
  cluster_.expect_working({0, 1, 2});
}

TEST_P(LinksOnDemand, a_node_that_was_never_linked_is_drained_and_removed) {
  open_all({0, 1});
  cluster_.add(5, {0, 1});
  cluster_.drain(5, {0});
  EXPECT_EQ(cluster_.events(0).await("drained"), "drained 5");
  for (const uint32_t n : {0u, 1u}) {
    EXPECT_TRUE(is_ok(Nodes(cluster_[n]).remove(5)));
    EXPECT_EQ(cluster_.events(n).await("removed"), "removed 5");
    EXPECT_EQ(cluster_.events(n).count("lost"), 0u);
  }
  const QueryId id = cluster_[0].begin_query();
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, ChangingCluster::workers_of({0, 5}))));
  expect_error(cause_of(0, id), Code::peer_lost, {"node 5", "is missing"});
  cluster_.worker(0).release_ownership();
  cluster_.add(5, {0, 1});
  cluster_.open(5, {0, 1, 5});
  cluster_.expect_working({0, 1, 5});
}

// Links are made, and checked, when queries need them.
TEST(ListOfNodes, takes_no_memory_for_those_that_are_not_linked_at_open) {
  const HeldAddress own(listen_address(0));
  std::string list = own.address();
  for (int node = 1; node < 1000; ++node) list += fmt::format(",worker-{}.example:7000", node);
  const auto open = [&](const char* wait_for) {
    return Session::open(value_of(config_of(0, list,
                                            small_rings({{"cluster.node_limit", "1000"},
                                                         {"cluster.workers", "2"},
                                                         {"connect.wait_for", wait_for},
                                                         {"memory.limit_bytes", "4 MiB"}}))));
  };
  EXPECT_TRUE(is_ok(open("none")));
  expect_error(open("all").status(), Code::resource_limit, {"memory.limit_bytes is 4194304 bytes"});
}

// Nobody that it is linked with needs the drained node, but the issuer, with which it is not linked yet, does.
TEST_P(LinksOnDemand, a_drain_waits_for_a_query_whose_nodes_are_not_linked_yet) {
  cluster_.open(0, {0, 1, 2});
  const std::vector<uint32_t> workers = ChangingCluster::workers_of({0, 2});
  cluster_.open(1, {0, 1, 2});
  const QueryId id = cluster_[1].begin_query();
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, workers)));
  cluster_.drain(2, {0});
  EXPECT_EQ(cluster_.events(0).count("drained"), 0u);
  cluster_.open(2, {0, 1, 2});
  for (const uint32_t n : {1u, 2u}) EXPECT_TRUE(is_ok(cluster_[n].declare_query(id, workers)));
  cluster_.run(id, {0, 2}, 100);
  cluster_.drain(2, {1, 2});
  for (const uint32_t n : {0u, 1u, 2u}) EXPECT_EQ(cluster_.events(n).await("drained"), "drained 2");
}

}  // namespace
}  // namespace faro::test
