// What a session tells its listener: nodes that leave and return, queries that fail.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "support/recorded_events.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

class SessionListening : public ShuffleApi {
 protected:
  std::shared_ptr<RecordedEvents> listen(uint32_t node) {
    auto events = std::make_shared<RecordedEvents>();
    session(node).listen(events->listener());
    return events;
  }
};

TEST_F(SessionListening, a_node_that_closes_has_left_and_one_that_opens_again_has_returned) {
  open(2);
  const auto events = listen(0);
  cluster_->session(1).reset();
  EXPECT_EQ(events->await("left"), "left 1");
  EXPECT_FALSE(session(0).has_node(1));
  ASSERT_TRUE(is_ok(cluster_->restart(1)));
  EXPECT_EQ(events->await("returned"), "returned 1");
  EXPECT_TRUE(session(0).has_node(1));
  expect_working();
  EXPECT_EQ(events->count("lost"), 0u);
  EXPECT_EQ(events->count("failed"), 0u);
}

// No tick of the network thread comes that early.
TEST_F(SessionListening, a_failed_query_is_told_once_on_every_node_that_has_to_do_with_it) {
  open(3, {{"liveness.timeout_ms", "86400000"}});
  const std::shared_ptr<RecordedEvents> events[] = {listen(0), listen(1), listen(2)};
  const QueryId query = session(0).begin_query();
  for (const uint32_t node : {0u, 1u})
    ASSERT_TRUE(is_ok(session(node).declare_query(query, {0, 1})));
  std::thread other([&] { (void)worker(0).end_query(query); });
  EXPECT_EQ(worker(1).end_query(query, Status(Code::query_failed, "no such table")),
            Outcome::failed);
  other.join();
  const std::string told = "failed " + query.to_string();
  for (const uint32_t node : {0u, 1u}) {
    expect_contains(events[node]->await(told), "worker 1 failed: no such table");
    EXPECT_EQ(events[node]->count("failed"), 1u);
  }
  EXPECT_EQ(events[2]->count("failed"), 0u);
}

TEST_F(SessionListening, a_listener_may_use_the_session_and_its_successor_is_told_alone) {
  open(1);
  const auto former = listen(0);
  const QueryId first = session().begin_query();
  const QueryId second = session().begin_query();
  const auto latter = std::make_shared<RecordedEvents>();
  session().listen({.query_failed = [&, told = latter->listener().query_failed](
                                        const QueryId& query, const Status& cause) {
    told(query, cause);
    if (query == first) (void)session().cancel_query(second, "so is this");
  }});
  (void)session().cancel_query(first, "not needed");
  expect_contains(latter->await("failed " + first.to_string()), "not needed");
  expect_contains(latter->await("failed " + second.to_string()), "so is this");
  EXPECT_EQ(former->count("failed"), 0u);
}

TEST_F(SessionListening, closing_the_own_session_tells_nothing) {
  open(1);
  const auto events = listen(0);
  const QueryId query = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(query, 0, 8));
  EXPECT_TRUE(session().close().ok());
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::failed);
  shuffle.close();
  EXPECT_EQ(events->count(""), 0u);
}

}  // namespace
}  // namespace faro::test
