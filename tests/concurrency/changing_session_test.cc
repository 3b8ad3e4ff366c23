// Sessions whose nodes are added, drained and removed while they are open (native/session/README.md, "Nodes that come and
// go"). Real sessions in one process, over sockets and shared memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "node/session_access.h"
#include "support/certificates.h"
#include "support/changing_cluster.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using std::chrono::seconds;

uint64_t resident_bytes() {
  uint64_t all = 0;
  uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/// "tls": tcp, with certificates.
class ChangingSession : public testing::TestWithParam<std::string> {
 protected:
  static SettingList settings() {
    if (GetParam() != "tls") return {{"transport", GetParam()}};
    static const NodeFiles files = Authority().issue();
    SettingList settings = files.settings();
    settings.emplace_back("transport", "tcp");
    return settings;
  }

  Watchdog watchdog_{seconds(50), [] { return std::string("a changing session"); }};
  ChangingCluster cluster_{settings()};
};

INSTANTIATE_TEST_SUITE_P(Transports, ChangingSession,
                         testing::ValuesIn(transports_to_test({"tcp", "shm"})),
                         [](const auto& each) { return each.param; });
INSTANTIATE_TEST_SUITE_P(Encrypted, ChangingSession, testing::Values("tls"),
                         [](const auto& each) { return each.param; });

TEST_P(ChangingSession, an_added_node_takes_part_in_a_query_with_old_ones) {
  cluster_.open_all({0, 1});
  cluster_.expect_working({0, 1});
  cluster_.add(2, {0, 1});
  cluster_.open(2, {0, 1, 2});
  for (const uint32_t n : {0u, 1u}) {
    EXPECT_EQ(cluster_.events(n).await("added"), "added 2");
    EXPECT_TRUE(cluster_[n].has_node(2));
  }
  cluster_.expect_working({0, 1, 2}, 1'000);
  cluster_.expect_working({1, 2});
  EXPECT_EQ(cluster_.events(0).count("returned"), 0u);
}

TEST_P(ChangingSession, a_node_waits_for_those_that_were_not_told_of_it_yet) {
  cluster_.open_all({0, 1});
  cluster_.add(2, {0});
  std::thread joins([&] { cluster_.open(2, {0, 1, 2}); });
  // Node 2 has reached node 1, which does not know it, or is about to: either way it has to wait.
  cluster_.add(2, {1});
  joins.join();
  cluster_.expect_working({0, 1, 2});
}

TEST_P(ChangingSession, one_that_nobody_was_told_of_is_refused_and_says_what_is_missing) {
  cluster_.open_all({0});
  Status refused;
  do {  // until the answer came in time
    refused = cluster_.try_open(1, {0, 1}, {{"connect.timeout_ms", "300"}}).status();
    ASSERT_EQ(refused.code(), Code::connect_failed);
  } while (!contains(std::string(refused.message()), "was not told of node 1"));
  cluster_.expect_working({0});
}

TEST_P(ChangingSession, two_nodes_are_added_at_once) {
  cluster_.open_all({0, 1});
  cluster_.add(2, {0, 1});
  cluster_.add(3, {0, 1});
  std::map<uint32_t, std::unique_ptr<Session>> opened;
  std::thread other([&] { opened[2] = value_of(cluster_.try_open(2, {0, 1, 2, 3})); });
  cluster_.open(3, {0, 1, 2, 3});
  other.join();
  cluster_.adopt(2, std::move(opened[2]));
  cluster_.await_all({0, 1, 2, 3});
  cluster_.expect_working({0, 1, 2, 3});
}

TEST_P(ChangingSession, two_nodes_that_do_not_list_each_other_link_when_they_are_told) {
  cluster_.open_all({0});
  cluster_.add(1, {0});
  cluster_.add(2, {0});
  cluster_.open(1, {0, 1});
  cluster_.open(2, {0, 2});
  cluster_.add(2, {1});
  EXPECT_FALSE(cluster_[1].has_node(2));
  cluster_.add(1, {2});
  cluster_.await_all({0, 1, 2});
  cluster_.expect_working({0, 1, 2});
}

TEST_P(ChangingSession, a_node_that_knows_only_itself_is_told_of_the_others) {
  cluster_.open(3, {3});
  cluster_.expect_working({3});
  cluster_.open(0, {0});
  cluster_.add(0, {3});
  cluster_.add(3, {0});
  cluster_.await_all({0, 3});
  cluster_.expect_working({0, 3});
}

TEST_P(ChangingSession, absent_nodes_do_not_block_open) {
  const SettingList nobody = {{"connect.wait_for", "none"}};
  cluster_.open(0, {0, 1, 2}, nobody);
  EXPECT_FALSE(cluster_[0].has_node(1));
  cluster_.expect_working({0});
  cluster_.open(2, {0, 1, 2}, nobody);
  cluster_.await_all({0, 2});
  cluster_.expect_working({0, 2});
  cluster_.open(1, {0, 1, 2}, nobody);
  cluster_.await_all({0, 1, 2});
  cluster_.expect_working({0, 1, 2});
  // They were in the list.
  EXPECT_EQ(cluster_.events(0).count("added"), 0u);
}

TEST_P(ChangingSession, queries_that_run_are_not_disturbed) {
  cluster_.open_all({0, 1});
  const QueryId id = cluster_.begin_query({0, 1});
  // Two of its workers have begun, on one of which rows wait.
  Shuffle at_0 = cluster_.open_shuffle(0, id);
  Shuffle at_2 = cluster_.open_shuffle(2, id);
  const uint64_t row = 17;
  EXPECT_EQ(at_0.sender()->send(2, std::as_bytes(std::span(&row, 1))), Outcome::done);
  EXPECT_EQ(at_0.sender()->flush(), Outcome::done);
  Batch held;
  EXPECT_EQ(at_2.receiver()->receive(held), Outcome::done);
  cluster_.add(2, {0, 1});
  cluster_.open(2, {0, 1, 2});
  cluster_.await_all({0, 1, 2});
  // A query beside it has the new node, which is drained and removed then.
  const QueryId beside = cluster_.begin_query({0, 1, 2});
  cluster_.drain(2, {0, 1, 2});
  EXPECT_EQ(cluster_.events(0).count("drained"), 0u);
  EXPECT_TRUE(is_ok(cluster_[0].cancel_query(beside, "enough")));
  for (const uint32_t w : ChangingCluster::workers_of({0, 1, 2})) {
    Status cause;
    Outcome outcome = Outcome::holding;  // a batch, until the node is told
    while (outcome == Outcome::holding) outcome = end_query(cluster_.worker(w), beside, cause);
    EXPECT_EQ(outcome, Outcome::failed);
  }
  for (const uint32_t n : {0u, 1u}) EXPECT_EQ(cluster_.events(n).await("drained"), "drained 2");
  cluster_.remove(2, {0, 1});
  EXPECT_EQ(std::memcmp(held.bytes().data(), &row, sizeof row), 0);
  held.release();
  for (const uint32_t w : ChangingCluster::workers_of({0, 1}))
    cluster_.worker(w).release_ownership();
  std::vector<std::thread> threads;
  for (const uint32_t w : ChangingCluster::workers_of({0, 1})) {
    threads.emplace_back([&, w] {
      Shuffle own = w == 0   ? std::move(at_0)
                    : w == 2 ? std::move(at_2)
                             : cluster_.open_shuffle(w, id);
      cluster_.run_worker(id, std::move(own), w, 10, 4);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(ChangingSession, a_drained_node_ends_its_queries_and_takes_no_new_ones) {
  cluster_.open_all({0, 1, 2});
  const QueryId id = cluster_.begin_query({0, 1, 2});
  cluster_.drain(2, {0, 1, 2});
  // It may have been planned already, and its coordinator has not begun it: none of them begins another one.
  for (const uint32_t n : {0u, 1u, 2u}) {
    const QueryId late = cluster_[n].begin_query();
    expect_error(cluster_[n].declare_query(late, ChangingCluster::workers_of({0, 2})),
                 Code::invalid_argument, {"node 2", "is being drained"});
  }
  EXPECT_EQ(cluster_.events(0).count("drained"), 0u);
  cluster_.run(id, {0, 1, 2}, 1'000);
  for (const uint32_t n : {0u, 1u, 2u}) EXPECT_EQ(cluster_.events(n).await("drained"), "drained 2");
  EXPECT_FALSE(cluster_[0].has_node(2));
  EXPECT_EQ(cluster_.events(0).count("lost"), 0u);
  cluster_.expect_working({0, 1});
  cluster_.close(2);
  cluster_.expect_working({0, 1});
}

TEST_P(ChangingSession, a_drained_node_names_why_its_links_have_ended) {
  cluster_.open_all({0, 1});
  const QueryId id = cluster_[0].begin_query();
  cluster_.drain(1, {0, 1});
  for (const uint32_t n : {0u, 1u}) EXPECT_EQ(cluster_.events(n).await("drained"), "drained 1");
  expect_error(cluster_[1].declare_query(id, ChangingCluster::workers_of({0, 1})), Code::peer_lost,
               {"node 0", "let go of node 1", "which is drained"});
}

// A participant may hear of a query long after a drain has begun.
TEST_P(ChangingSession, a_query_that_began_before_the_drain_is_declared_elsewhere_after_it) {
  cluster_.open_all({0, 1, 2});
  const std::vector<uint32_t> workers = ChangingCluster::workers_of({0, 1, 2});
  const QueryId id = cluster_[0].begin_query();
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, workers)));
  cluster_.drain(2, {1, 2, 0});
  // Nodes 1 and 2 do not know a query; node 0 has not released node 2.
  EXPECT_TRUE(is_ok(cluster_[2].declare_query(id, workers)));
  EXPECT_TRUE(is_ok(cluster_[1].declare_query(id, workers)));
  cluster_.run(id, {0, 1, 2});
  for (const uint32_t n : {0u, 1u, 2u}) EXPECT_EQ(cluster_.events(n).await("drained"), "drained 2");
}

TEST_P(ChangingSession, a_query_that_was_never_declared_does_not_hold_up_a_drain) {
  cluster_.open_all({0, 1, 2});
  const QueryId id = cluster_[0].begin_query();
  EXPECT_TRUE(is_ok(cluster_[0].cancel_query(id, "not wanted")));
  cluster_.drain(2, {0, 1, 2});
  for (const uint32_t n : {0u, 1u, 2u}) EXPECT_EQ(cluster_.events(n).await("drained"), "drained 2");
}

// Under a sanitizer freed memory stays resident; what is kept is a leak to it.
#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_UNDEFINED) || \
    defined(FARO_SANITIZE_THREAD)
constexpr bool kFreedMemoryGoes = false;
#else
constexpr bool kFreedMemoryGoes = true;
#endif

TEST_P(ChangingSession, the_memory_of_a_drained_node_is_given_back) {
  // Rings that show: of a link, 16 MiB in each direction.
  SettingList some = settings();
  some.insert(some.end(), {{"ring.bytes", "2 MiB"}, {"liveness.timeout_ms", "1000"}});
  ChangingCluster large(some);
  large.open_all({0});
  large.expect_working({0});
  const uint64_t before = resident_bytes();
  large.add(1, {0});
  large.open(1, {0, 1});
  large.await_all({0, 1});
  large.expect_working({0, 1});
  EXPECT_GT(resident_bytes(), before + (16 << 20));
  EXPECT_EQ(large[0].metrics().links.size(), 2u);
  large.drain(1, {0, 1});
  EXPECT_EQ(large.events(0).await("drained"), "drained 1");
  large.close(1);
  // The workers look at their links, and the network thread destroys what they have left, some time after that.
  large.expect_working({0});
  while (kFreedMemoryGoes && resident_bytes() > before + (8 << 20)) std::this_thread::yield();
  large.remove(1, {0});
  EXPECT_EQ(large[0].metrics().links.size(), 1u);
}

TEST_P(ChangingSession, a_removed_node_is_lost_to_its_queries_and_refused_from_then_on) {
  cluster_.open_all({0, 1, 2});
  const QueryId id = cluster_.begin_query({0, 1, 2});
  Shuffle at_0 = cluster_.open_shuffle(0, id);
  cluster_.remove(2, {0, 1});
  Status cause;
  at_0.close();
  EXPECT_EQ(end_query(cluster_.worker(0), id, cause), Outcome::failed);
  expect_error(cause, Code::peer_lost, {"node 2", "was removed from the session of node"});
  cluster_.worker(0).release_ownership();
  // Node 2 dials both, and goes on doing so: also when its number is that of a node again it is refused, as it was removed.
  cluster_.add(2, {0, 1});
  cluster_.expect_working({0, 1});
  EXPECT_FALSE(cluster_[0].has_node(2));
  const Status there = cluster_[0].await_node(2, Wait::at_most(std::chrono::milliseconds(600)));
  EXPECT_EQ(there.code(), Code::deadline_exceeded);
  // Another process is not.
  cluster_.close(2);
  cluster_.open(2, {0, 1, 2});
  cluster_.await_all({0, 1, 2});
  cluster_.expect_working({0, 1, 2});
}

TEST_P(ChangingSession, a_number_is_used_again_at_another_address) {
  cluster_.open_all({0, 1, 2});
  cluster_.expect_working({0, 1, 2});
  // A node with a lower number than one that dials it.
  cluster_.drain(1, {0, 1, 2});
  for (const uint32_t n : {0u, 1u, 2u}) EXPECT_EQ(cluster_.events(n).await("drained"), "drained 1");
  cluster_.remove(1, {0, 2});
  cluster_.close(1);
  cluster_.move(1);
  cluster_.add(1, {0, 2});
  cluster_.open(1, {0, 1, 2});
  for (const uint32_t n : {0u, 2u}) EXPECT_EQ(cluster_.events(n).await("added"), "added 1");
  cluster_.await_all({0, 1, 2});
  cluster_.expect_working({0, 1, 2}, 1'000);
}

TEST_P(ChangingSession, nodes_come_and_go_many_times) {
  cluster_.open_all({0, 1});
  for (uint64_t round = 0; round < 10; ++round) {
    cluster_.add(2, {0, 1});
    cluster_.open(2, {0, 1, 2});
    cluster_.await_all({0, 1, 2});
    cluster_.expect_working({0, 1, 2});
    cluster_.drain(2, {0, 1, 2});
    EXPECT_EQ(cluster_.events(2).await("drained"), "drained 2");
    cluster_.close(2);
    for (const uint32_t n : {0u, 1u}) EXPECT_TRUE(is_ok(Nodes(cluster_[n]).remove(2)));
    for (const uint32_t n : {0u, 1u}) (void)cluster_.events(n).await("removed 2", round + 1);
    cluster_.expect_working({0, 1});
  }
}

TEST_P(ChangingSession, what_cannot_be_is_refused) {
  cluster_.open_all({0, 1});
  Session& session = cluster_[1];
  expect_error(Nodes(session).add({0, cluster_.address(0)}), Code::wrong_state, {"node 0"});
  expect_error(Nodes(session).add({1, cluster_.address(1)}), Code::invalid_argument, {"itself"});
  expect_error(Nodes(session).add({8, cluster_.address(2)}), Code::invalid_argument,
               {"cluster.node_limit = 8"});
  expect_error(Nodes(session).add({2, "no address"}), Code::invalid_argument, {"no address"});
  expect_error(Nodes(session).remove(1), Code::invalid_argument, {"itself"});
  expect_error(Nodes(session).remove(2), Code::invalid_argument, {"2"});
  expect_error(Nodes(session).drain(2), Code::invalid_argument, {"2"});
  const QueryId id = session.begin_query();
  const Result<Shuffle> opened = session.worker(0).open_shuffle({id, 0, 8, {}, {}});
  expect_error(opened.status(), Code::wrong_state, {"declare_query"});
  expect_error(session.declare_query(id, {}), Code::invalid_argument, {"workers", "named"});
  session.worker(0).release_ownership();
  (void)session.close();
  expect_error(Nodes(session).add({2, cluster_.address(2)}), Code::session_closed, {});
  expect_error(session.declare_query(id, {0, 2}), Code::session_closed, {});
  expect_error(session.cancel_query(id, "too late"), Code::session_closed, {});
}

TEST_P(ChangingSession, nodes_agree_on_the_numbers_that_there_are) {
  cluster_.open_all({0});
  cluster_.add(1, {0});
  for (const char* other : {"4", "0"}) {
    const auto opened = cluster_.try_open(1, {0, 1}, {{"cluster.node_limit", other}});
    expect_error(opened.status(), Code::configuration_mismatch, {"cluster.node_limit", other, "8"});
  }
  const auto other = cluster_.try_open(1, {0, 1}, {{"cluster.workers", "3"}});
  expect_error(other.status(), Code::configuration_mismatch, {"cluster.workers"});
  cluster_.expect_working({0});
}

TEST_P(ChangingSession, a_list_that_cannot_be_is_refused) {
  const auto too_long = cluster_.try_open(0, {0, 1, 2}, {{"cluster.node_limit", "2"}});
  expect_error(too_long.status(), Code::config_invalid, {"3 entries", "cluster.node_limit = 2"});
  const auto without_itself = cluster_.try_open(1, {0, 2});
  expect_error(without_itself.status(), Code::config_invalid, {"no address for node 1"});
  const auto uneven = cluster_.try_open(0, {0, 1}, {{"cluster.workers", "1,2"}});
  expect_error(uneven.status(), Code::config_invalid, {"cluster.workers = 1,2"});
}

TEST_P(ChangingSession, a_query_fails_at_once_if_it_names_a_node_that_is_not_there) {
  cluster_.open_all({0, 1});
  const QueryId id = cluster_[0].begin_query();
  EXPECT_TRUE(is_ok(cluster_[0].declare_query(id, ChangingCluster::workers_of({0, 5}))));
  Status cause;
  EXPECT_EQ(end_query(cluster_.worker(0), id, cause), Outcome::failed);
  expect_error(cause, Code::peer_lost, {"node 5"});
}

// A link takes 16 MiB here over tcp, and the rings between a node's own workers 8 MiB: node 0 has room for one link.
TEST(SmallSession, a_node_for_which_there_is_no_room_is_refused_with_the_figures) {
  Watchdog watchdog(seconds(50), [] { return std::string("a small session"); });
  ChangingCluster cluster(
      {{"transport", "tcp"}, {"ring.bytes", "1 MiB"}, {"liveness.timeout_ms", "1000"}});
  cluster.open(0, {0}, {{"memory.limit_bytes", "30 MiB"}});
  cluster.add(1, {0});
  cluster.open(1, {0, 1});
  cluster.await_all({0, 1});
  cluster.add(2, {0});
  const auto refused = cluster.try_open(2, {0, 2});
  expect_error(refused.status(), Code::connect_failed,
               {"one more link needs 16.0 MiB", "memory.limit_bytes = 31457280"});
  cluster.expect_working({0, 1});
  // The other one makes room.
  cluster.drain(1, {0, 1});
  EXPECT_EQ(cluster.events(0).await("drained"), "drained 1");
  cluster.expect_working({0});
  cluster.close(1);
  while (true) {  // the link's memory is given back a little later
    auto opened = cluster.try_open(2, {0, 2});
    if (!opened.ok()) continue;
    cluster.adopt(2, std::move(*opened));
    break;
  }
  cluster.await_all({0, 2});
  cluster.expect_working({0, 2});
}

/// Node 0 has room for its links to four nodes, each of which knows it alone, and not for a fifth. Its workers make no call but
/// for queries.
class NearlyFullSession : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string limit = GetParam() == "tcp" ? "20 MiB" : "11 MiB";
    cluster_.open(0, {0}, {{"memory.limit_bytes", limit}});
    for (uint32_t n = 1; n <= 4; ++n) join(n);
    cluster_.add(5, {0});
    expect_error(cluster_.try_open(5, {0, 5}).status(), Code::connect_failed,
                 {"one more link needs"});
  }
  void join(uint32_t node) {
    cluster_.add(node, {0});
    cluster_.open(node, {0, node});
    cluster_.expect_working({0, node});
  }
  /// Node 0's network thread gives memory back a little after a node has gone.
  void join_when_there_is_room(uint32_t node) {
    cluster_.add(node, {0});
    for (;;) {
      auto opened = cluster_.try_open(node, {0, node});
      if (!opened.ok()) continue;
      cluster_.adopt(node, std::move(*opened));
      return cluster_.expect_working({0, node});
    }
  }
  uint32_t links_kept() {
    return SessionAccess::core(cluster_[0]).membership().retired_link_count();
  }

  Watchdog watchdog_{seconds(50), [] { return std::string("a session that is nearly full"); }};
  ChangingCluster cluster_{{{"transport", GetParam()}, {"ring.bytes", "256 KiB"}}};
};

INSTANTIATE_TEST_SUITE_P(Transports, NearlyFullSession,
                         testing::ValuesIn(transports_to_test({"tcp", "shm"})),
                         [](const auto& each) { return each.param; });

TEST_P(NearlyFullSession,
       admits_others_when_half_of_its_peers_have_gone_and_its_workers_do_nothing) {
  cluster_.close(1);
  cluster_.remove(2, {0});
  cluster_.close(2);
  for (const uint32_t n : {6u, 7u}) join_when_there_is_room(n);
  EXPECT_EQ(links_kept(), 0u);
  for (const uint32_t n : {3u, 4u}) cluster_.expect_working({0, n});
  // It counts what it did before: there is no room for a fifth.
  expect_error(cluster_.try_open(5, {0, 5}).status(), Code::connect_failed,
               {"one more link needs"});
}

TEST_P(NearlyFullSession, keeps_what_a_worker_holds_until_it_is_released) {
  const QueryId id = cluster_.begin_query({0, 1});
  std::map<uint32_t, Shuffle> shuffles;
  for (const uint32_t w : ChangingCluster::workers_of({0, 1}))
    shuffles[w] = cluster_.open_shuffle(w, id);
  const uint64_t row = 4711;
  EXPECT_EQ(shuffles[2].sender()->send(0, std::as_bytes(std::span(&row, 1))), Outcome::done);
  EXPECT_EQ(shuffles[2].sender()->finish(), Outcome::done);
  Batch batch;
  EXPECT_EQ(shuffles[0].receiver()->receive(batch), Outcome::done);
  shuffles.clear();
  cluster_.close(1);
  EXPECT_EQ(cluster_.events(0).await("left"), "left 1");
  expect_error(cluster_.try_open(5, {0, 5}).status(), Code::connect_failed,
               {"one more link needs", "whose frames are held"});
  EXPECT_EQ(batch.rows<uint64_t>()[0], row);
  batch.release();  // the worker's only call
  for (const uint32_t w : {0u, 1u}) cluster_.worker(w).release_ownership();
  join_when_there_is_room(6);
}

}  // namespace
}  // namespace faro::test
