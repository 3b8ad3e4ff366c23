// What a user sees of a session with a fixed list of nodes: the table "A fixed list" of native/session/README.md.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "faro/log.h"
#include "faro/nodes.h"
#include "node/session_access.h"
#include "support/recorded_events.h"
#include "support/shuffle_api.h"
#include "support/temporary_folder.h"

namespace faro::test {
namespace {

class FixedSession : public ShuffleApi {};

TEST_F(FixedSession, has_the_numbers_of_its_list) {
  open(3);
  for (const uint32_t n : {0u, 1u, 2u}) {
    EXPECT_EQ(session(n).node_count(), 3u);
    EXPECT_EQ(session(n).worker_count(), 3u);
    EXPECT_EQ(session(0).first_worker(n), n);
  }
}

TEST_F(FixedSession, is_linked_with_all_of_its_list_when_open_returns) {
  open(3);
  for (const uint32_t n : {0u, 1u, 2u}) {
    for (const uint32_t other : {0u, 1u, 2u}) EXPECT_TRUE(session(n).has_node(other));
  }
}

TEST_F(FixedSession, waits_for_nobody_if_it_is_told_so_and_links_with_those_who_come) {
  open(2, {{"connect.wait_for", "none"}});
  for (const uint32_t n : {0u, 1u}) EXPECT_TRUE(is_ok(session(n).await_node(1 - n)));
  expect_working();
}

// A query that is declared, or a worker that uses one, is not needed for it.
TEST_F(FixedSession, links_again_with_a_node_that_is_back_and_tells_of_it_without_a_query) {
  open(2);
  const auto events = std::make_shared<RecordedEvents>();
  session(0).listen(events->listener());
  cluster_->session(1).reset();
  EXPECT_EQ(events->await("left"), "left 1");
  EXPECT_FALSE(session(0).has_node(1));
  ASSERT_TRUE(is_ok(cluster_->restart(1)));
  EXPECT_EQ(events->await("returned"), "returned 1");
  EXPECT_TRUE(session(0).has_node(1));
}

TEST_F(FixedSession, has_all_workers_in_a_query_that_was_not_declared) {
  const QueryId id = open_and_begin(3);
  Shuffle shuffle = open_shuffle(worker(0), spec(id, 0, 8));
  EXPECT_EQ(shuffle.spec().senders, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(shuffle.spec().receivers, (std::vector<uint32_t>{0, 1, 2}));
  shuffle.close();
  EXPECT_EQ(end_failed(worker(0), id).code(), Code::query_cancelled);
}

TEST_F(FixedSession, fails_a_query_at_once_whose_member_is_not_there) {
  open(2);
  const auto events = std::make_shared<RecordedEvents>();
  session(0).listen(events->listener());
  cluster_->session(1).reset();
  EXPECT_EQ(events->await("left"), "left 1");
  Worker& only = session(0).worker(0);
  for (const bool is_declared : {true, false}) {
    const QueryId id = session(0).begin_query();
    if (is_declared) {
      EXPECT_TRUE(is_ok(session(0).declare_query(id, {0, 1})));
    }
    expect_error(end_failed(only, id), Code::peer_lost, {"node 1"});
  }
  const QueryId without = session(0).begin_query();
  ASSERT_TRUE(is_ok(session(0).declare_query(without, {0})));
  Shuffle shuffle = open_shuffle(only, spec(without, 0, 8, {0}, {0}));
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  EXPECT_EQ(take_rows(shuffle), 0u);
  shuffle.close();
  Status cause;
  EXPECT_EQ(end_query(only, without, cause), Outcome::done) << cause.to_string();
}

// Whoever sees that it is gone may begin a query at once, which says why it fails. The line of the
// log comes before queries know.
TEST_F(FixedSession, has_a_node_until_queries_know_that_it_is_lost) {
  open(2);
  const auto events = std::make_shared<RecordedEvents>();
  session(0).listen(events->listener());
  const Shuffle running = open_shuffle(session(0).worker(0), spec(session(0).begin_query(), 0, 8));
  std::atomic<bool> had_it = false, has_failed = false, has_it_still = false;
  set_log_sink([&](LogLevel, std::string_view line) {
    if (!line.starts_with("node 0 (")) return;
    if (line.find("is lost: ") != line.npos && line.find("query") == line.npos)
      had_it = session(0).has_node(1);
    if (line.find("query 0:1 failed: peer_lost") == line.npos) return;
    has_failed = true;
    has_it_still = session(0).has_node(1);
  });
  session::Membership& membership = SessionAccess::core(session(0)).membership();
  membership.fail_link(1, membership.link(1), Status(Code::peer_lost, "enough"));
  EXPECT_TRUE(events->await("lost").starts_with("lost 1"));
  set_log_sink({});
  EXPECT_TRUE(had_it);
  EXPECT_TRUE(has_failed);
  EXPECT_FALSE(has_it_still) << "when a query fails by the loss";
  const QueryId id = session(0).begin_query();
  expect_error(end_failed(session(0).worker(0), id), Code::peer_lost, {"node 1", "enough"});
}

TEST_F(FixedSession, checks_the_memory_of_all_rings_when_it_opens) {
  const SessionCluster cluster(3, small_rings({{"memory.limit_bytes", "64 KiB"}}));
  expect_error(cluster.status(), Code::resource_limit, {"memory.limit_bytes"});
}

TEST_F(FixedSession, has_nobody_added_drained_or_removed) {
  open(1);
  expect_error(Nodes(session()).add({1, "127.0.0.1:1"}), Code::wrong_state, {"cluster.node_limit"});
  expect_error(Nodes(session()).drain(0), Code::wrong_state, {"cluster.node_limit"});
  expect_error(Nodes(session()).remove(0), Code::wrong_state, {"cluster.node_limit"});
}

/// The last node of a list with `count` entries; none of the others ever comes.
Result<std::unique_ptr<Session>> open_alone(int count, const std::string& counters_folder) {
  std::string addresses;
  for (int n = 1; n < count; ++n) addresses += "127.0.0.1:" + std::to_string(n) + ",";
  Config config;
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"cluster.nodes", addresses + "127.0.0.1:0"},
           {"cluster.node", std::to_string(count - 1)},
           {"connect.wait_for", "none"},
           {"counters.folder", counters_folder}}) {
    EXPECT_TRUE(is_ok(config.set(name, value)));
  }
  return Session::open(config);
}

TEST(FixedSessionAlone, fails_a_query_at_once_whose_member_has_never_come) {
  const auto session = value_of(open_alone(2, ""));
  const QueryId id = session->begin_query();
  ASSERT_TRUE(is_ok(session->declare_query(id, {0, 1})));
  Status cause;
  EXPECT_EQ(end_query(session->worker(0), id, cause), Outcome::failed);
  expect_error(cause, Code::peer_lost,
               {"node 0", "has not come back since this node opened its session"});
}

// Else the file of a folder that is full would end the process when a lane counts for the first time.
TEST(FixedSessionAlone, has_room_for_the_counters_of_all_lanes_from_the_start) {
  const TemporaryFolder folder;
  const auto session = value_of(open_alone(200, folder.path()));
  const auto file = std::filesystem::directory_iterator(folder.path())->path();
  struct stat state {};
  ASSERT_EQ(stat(file.c_str(), &state), 0);
  EXPECT_GE(state.st_blocks * 512, state.st_size);
}

}  // namespace
}  // namespace faro::test
