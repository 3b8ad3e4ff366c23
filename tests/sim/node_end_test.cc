// The end of lanes to a node (native/DESIGN.md#hc-18): what one of its workers does not do keeps no other.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster.h"
#include "sim/node_lanes_run.h"

namespace faro::test {
namespace {

constexpr uint32_t kRing = 4096;

#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_UNDEFINED) || \
    defined(FARO_SANITIZE_THREAD)
constexpr uint64_t kSeeds = 30;
#else
constexpr uint64_t kSeeds = 300;
#endif

// A node with one worker, 0, and one with two, 1 and 2; a single ring leads from worker 0 to both of these.
ClusterShape one_and_two() {
  ClusterShape shape;
  shape.workers_per_node = {1, 2};
  shape.knobs.stall_limit = 2'000'000'000;
  shape.configure = [](Config& config, uint32_t) {
    EXPECT_TRUE(config.set("lane.ends", "node").ok());
    EXPECT_TRUE(config.set("ring.per_lane", 1).ok());
    EXPECT_TRUE(config.set("ring.bytes", uint64_t{kRing}).ok());
    EXPECT_TRUE(config.set("wait.sleep_ms", 10'000).ok());
  };
  return shape;
}

class NodeEndTest : public testing::Test {
 protected:
  Worker& worker(uint32_t number) {
    return number == 0 ? cluster_.session(0).worker(0) : cluster_.session(1).worker(number - 1);
  }
  // Stage 0 is for worker 1, stage 1 for worker 2.
  Shuffle open(uint32_t number, uint32_t stage) {
    Result<Shuffle> shuffle = worker(number).open_shuffle({query_, stage, 8, {0}, {stage + 1}});
    EXPECT_TRUE(shuffle.ok()) << shuffle.status().to_string();
    return shuffle.ok() ? std::move(*shuffle) : Shuffle();
  }
  void end(uint32_t number) {
    EXPECT_EQ(worker(number).end_query(query_), Outcome::done)
        << worker(number).status().to_string();
  }
  static uint64_t take_rows(Shuffle& shuffle) {
    uint64_t next = 0;
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      for (const uint64_t row : batch.rows<uint64_t>()) EXPECT_EQ(row, next++);
    }
    return next;
  }
  void run() { ASSERT_TRUE(cluster_.run().ok()) << cluster_.world().report(); }

  SimCluster cluster_{1, one_and_two()};
  QueryId query_;
};

TEST(NodeLanesRuns, nobody_misses_what_others_did_in_its_place) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    ASSERT_EQ(run_node_lanes_seed(seed).violation, "") << "seed " << seed;
}

// The rows for worker 1 fill the ring several times before those for worker 2 come. Worker 1 makes no call until worker 2 has all.
TEST_F(NodeEndTest, a_worker_that_makes_no_call_keeps_no_other_of_its_node_waiting) {
  constexpr uint64_t kRows = 5 * kRing / 8;
  ASSERT_TRUE(cluster_.open_sessions().ok()) << cluster_.world().report();
  query_ = cluster_.session(0).begin_query();
  bool is_second_done = false;
  cluster_.spawn(0, 0, [&] {
    Shuffle first = open(0, 0);
    Shuffle second = open(0, 1);
    for (uint64_t row = 0; row < kRows; ++row)
      ASSERT_EQ(first.sender<uint64_t>()->send(0, row), Outcome::done);
    ASSERT_EQ(first.sender()->finish(), Outcome::done);
    for (uint64_t row = 0; row < 3; ++row)
      ASSERT_EQ(second.sender<uint64_t>()->send(0, row), Outcome::done);
    ASSERT_EQ(second.sender()->finish(), Outcome::done);
    first.close();
    second.close();
    end(0);
  });
  cluster_.spawn(1, 0, [&] {
    cluster_.world().wait_until([&] { return is_second_done; }, base::kForever, "the other worker");
    Shuffle shuffle = open(1, 0);
    EXPECT_EQ(take_rows(shuffle), kRows);
    shuffle.close();
    end(1);
  });
  cluster_.spawn(1, 1, [&] {
    Shuffle shuffle = open(2, 1);
    EXPECT_EQ(take_rows(shuffle), 3u);
    is_second_done = true;
    shuffle.close();
    end(2);
  });
  run();
  EXPECT_GT(worker(2).metrics().frames_spilled, 0u) << "nothing was in its way";
}

// Worker 1 ends its part by a failure, and makes no call any more. What comes for it afterwards is dropped.
TEST_F(NodeEndTest, what_comes_for_a_query_that_has_failed_keeps_nobody_waiting) {
  ASSERT_TRUE(cluster_.open_sessions().ok()) << cluster_.world().report();
  query_ = cluster_.session(0).begin_query();
  bool has_failed = false;
  bool is_sent = false;
  cluster_.spawn(0, 0, [&] {
    Shuffle shuffle = open(0, 0);
    uint64_t row = 0;
    while (shuffle.sender<uint64_t>()->send(0, row, Wait::none()) == Outcome::done) ++row;
    EXPECT_GE(row, kRing / 8 / 2);
    is_sent = true;
    cluster_.world().wait_until([&] { return has_failed; }, base::kForever, "the failure");
    shuffle.close();
    EXPECT_EQ(worker(0).end_query(query_), Outcome::failed);
    // The rows of the next query go by that ring, too.
    query_ = cluster_.session(0).begin_query();
    Shuffle second = open(0, 1);
    for (uint64_t n = 0; n < kRing; ++n)
      ASSERT_EQ(second.sender<uint64_t>()->send(0, n), Outcome::done);
    ASSERT_EQ(second.sender()->finish(), Outcome::done);
  });
  cluster_.spawn(1, 0, [&] {
    const QueryId failing = query_;
    cluster_.world().wait_until([&] { return is_sent; }, base::kForever, "the rows");
    EXPECT_EQ(worker(1).end_query(failing, Status(Code::query_failed, "no")), Outcome::failed);
    has_failed = true;
  });
  cluster_.spawn(1, 1, [&] {
    const QueryId failing = query_;
    cluster_.world().wait_until([&] { return query_ != failing; }, base::kForever, "a query");
    Shuffle shuffle = open(2, 1);
    EXPECT_EQ(take_rows(shuffle), kRing);
  });
  run();
  EXPECT_EQ(worker(2).metrics().frames_spilled, 0u);
}

}  // namespace
}  // namespace faro::test
