// A session that is closed by one thread as another one tells the outcome of a query.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "unit/query_cluster.h"

namespace faro::shuffle {
namespace {

// Whether a thread of this process sleeps. 0: it has not begun.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name = stat.rfind(") ");
  return name != std::string::npos && stat[name + 2] == 'S';
}

// A worker sees the outcome as soon as it is decided, and its engine may close the session at once. What is queued behind
// the BYE of that close does not arrive.
TEST(QueryClose, who_closes_on_seeing_an_outcome_waits_until_it_is_queued_for_the_others) {
  QueryCluster cluster(2);
  const auto [id, queries] = cluster.begin_everywhere();
  cluster.end(1, *queries[1]);
  cluster.deliver(1, 0);
  std::atomic<pid_t> number = 0;
  std::atomic<bool> closed = false;
  bool was_known = false;
  bool was_closed = false;
  std::thread closer;
  cluster.nodes[0].sending = [&, &query = *queries[0]] {
    was_known = query.outcome_known();
    closer = std::thread([&] {
      number = gettid();
      cluster[0].close(kLost);
      closed = true;
    });
    while (!closed && !is_asleep(number)) std::this_thread::yield();
    was_closed = closed;
  };
  cluster.end(0, *queries[0]);
  ASSERT_TRUE(closer.joinable());
  closer.join();
  EXPECT_TRUE(was_known);
  EXPECT_FALSE(was_closed) << "its BYE would overtake the OUTCOME";
  cluster.deliver(0, 1);
  EXPECT_TRUE(queries[1]->outcome_known() && test::is_ok(queries[1]->outcome()));
}

}  // namespace
}  // namespace faro::shuffle
