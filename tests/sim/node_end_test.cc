// The end of lanes to a node (native/DESIGN.md#hc-18): what one of its workers does not do keeps no other.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "node/node_core.h"
#include "node/session_access.h"
#include "shuffle/receive/node_stream.h"
#include "sim/cluster.h"
#include "sim/node_lanes_run.h"
#include "sim/seeds.h"

namespace faro::test {
namespace {

constexpr uint32_t kRing = 4096;

constexpr uint64_t kSeeds = kIsSanitized ? 30 : 300;

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
  // Stage 0, for any of workers 1 and 2.
  Shuffle open_for_any(uint32_t number) {
    ShuffleSpec spec{query_, 0, 8, {0}, {1, 2}};
    spec.delivery = Delivery::node;
    Result<Shuffle> shuffle = worker(number).open_shuffle(spec);
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
  /// That a node counts over all its lanes.
  uint64_t counted(uint32_t node, uint64_t LaneMetrics::*what) {
    uint64_t sum = 0;
    for (const LaneMetrics& lane : cluster_.session(node).metrics().lanes) sum += lane.*what;
    return sum;
  }
  void run() { ASSERT_TRUE(cluster_.run().ok()) << cluster_.world().report(); }

  SimCluster cluster_{1, one_and_two()};
  QueryId query_;
};

TEST(NodeLanesRuns, nobody_misses_what_others_did_in_its_place) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    ASSERT_EQ(run_node_lanes_seed(seed).violation, "") << "seed " << seed;
}

// A look for what is still to be moved costs as much as lies in the ring, however much was moved before.
TEST(NodeStreams, what_was_moved_is_not_looked_at_again) {
  shuffle::NodeStream stream;
  EXPECT_EQ(stream.first_in_ring(), nullptr);
  std::array<shuffle::NodeFrame, 6> frames;
  for (shuffle::NodeFrame& frame : frames) {
    frame.view.header.kind = wire::FrameKind::data;
    stream.append(&frame);
  }
  frames.back().view.header.kind = wire::FrameKind::finish;
  EXPECT_EQ(stream.first_in_ring(), &frames[0]);
  for (const size_t moved : {0, 1, 2, 5}) frames[moved].is_moved = true;
  frames[1].is_moved = false;  // behind the last that was moved: nobody gets there
  EXPECT_EQ(stream.first_in_ring(), &frames[3]);
  for (const size_t moved : {3, 4}) frames[moved].is_moved = true;
  EXPECT_EQ(stream.first_in_ring(), nullptr);
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

// Frames of a row each, for worker 1, which makes no call. By itself each would take 288 bytes of overflow.
TEST_F(NodeEndTest, small_frames_that_nobody_takes_are_packed) {
  constexpr uint64_t kRows = 2'000;
  ASSERT_TRUE(cluster_.open_sessions().ok()) << cluster_.world().report();
  query_ = cluster_.session(0).begin_query();
  bool is_second_done = false;
  cluster_.spawn(0, 0, [&] {
    Shuffle first = open(0, 0);
    Shuffle second = open(0, 1);
    for (uint64_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(first.sender<uint64_t>()->send(0, row), Outcome::done);
      (void)first.sender()->flush();
    }
    ASSERT_EQ(first.sender()->finish(), Outcome::done);
    ASSERT_EQ(second.sender<uint64_t>()->send(0, uint64_t{0}), Outcome::done);
    ASSERT_EQ(second.sender()->finish(), Outcome::done);
    first.close();
    second.close();
    end(0);
  });
  cluster_.spawn(1, 0, [&] {
    cluster_.world().wait_until([&] { return is_second_done; }, base::kForever, "the other worker");
    EXPECT_GT(worker(2).metrics().frames_spilled, kRows * 9 / 10);
    EXPECT_LT(SessionAccess::core(cluster_.session(1)).overflow().memory_peak_bytes(), 48u << 10);
    Shuffle shuffle = open(1, 0);
    EXPECT_EQ(take_rows(shuffle), kRows);
    shuffle.close();
    end(1);
  });
  cluster_.spawn(1, 1, [&] {
    Shuffle shuffle = open(2, 1);
    EXPECT_EQ(take_rows(shuffle), 1u);
    is_second_done = true;
    shuffle.close();
    end(2);
  });
  run();
  EXPECT_EQ(counted(1, &LaneMetrics::frames_received), counted(0, &LaneMetrics::frames_sent));
  EXPECT_EQ(counted(1, &LaneMetrics::bytes_received), counted(0, &LaneMetrics::bytes_sent));
}

// An OPEN for several workers is copied to overflow when it is sorted, which the network thread leaves to a worker.
TEST_F(NodeEndTest, the_network_thread_writes_nothing_to_overflow) {
  ASSERT_TRUE(cluster_.open_sessions().ok()) << cluster_.world().report();
  query_ = cluster_.session(0).begin_query();
  bool is_sent = false;
  bool is_taken = false;
  cluster_.spawn(0, 0, [&] {
    Shuffle shuffle = open_for_any(0);
    ASSERT_EQ(shuffle.sender<uint64_t>()->send(0, uint64_t{0}), Outcome::done);
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    cluster_.sleep(100 * base::kMillisecond);
    is_sent = true;
    shuffle.close();
    end(0);
  });
  cluster_.spawn(1, 0, [&] {
    cluster_.world().wait_until([&] { return is_sent; }, base::kForever, "the sender");
    node::NodeCore& core = SessionAccess::core(cluster_.session(1));
    core.on_links_changed();
    core.on_tick(core.membership().clock().now_ns());
    EXPECT_EQ(core.overflow().memory_bytes(), 0u);
    EXPECT_EQ(worker(1).wait_until([] { return false; }, Wait::none()), Outcome::would_wait);
    EXPECT_GT(core.overflow().memory_bytes(), 0u) << "there was nothing to sort";
    Shuffle shuffle = open_for_any(1);
    EXPECT_EQ(take_rows(shuffle), 1u);
    is_taken = true;
    shuffle.close();
    end(1);
  });
  cluster_.spawn(1, 1, [&] {
    cluster_.world().wait_until([&] { return is_taken; }, base::kForever, "the other worker");
    Shuffle shuffle = open_for_any(2);
    EXPECT_EQ(take_rows(shuffle), 0u);
    shuffle.close();
    end(2);
  });
  run();
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

// Worker 2 waits for another stage, whose rows come last by the same ring. It could take those of the first one, too.
TEST_F(NodeEndTest, what_one_worker_takes_no_other_moves_to_overflow_before_nobody_does) {
  constexpr uint64_t kRows = 6 * kRing / 8;
  uint64_t taken = 0;
  ASSERT_TRUE(cluster_.open_sessions().ok()) << cluster_.world().report();
  query_ = cluster_.session(0).begin_query();
  cluster_.spawn(0, 0, [&] {
    Shuffle any = open_for_any(0);
    Shuffle other = open(0, 1);
    for (uint64_t row = 0; row < kRows; ++row)
      ASSERT_EQ(any.sender<uint64_t>()->send(0, row), Outcome::done);
    ASSERT_EQ(any.sender()->finish(), Outcome::done);
    ASSERT_EQ(other.sender<uint64_t>()->send(0, uint64_t{0}), Outcome::done);
    ASSERT_EQ(other.sender()->finish(), Outcome::done);
    any.close();
    other.close();
    end(0);
  });
  cluster_.spawn(1, 0, [&] {
    Shuffle shuffle = open_for_any(1);
    cluster_.sleep(base::kMillisecond / 2);  // worker 2 has opened, and waits
    Batch batch;
    for (int frame = 0; frame < 6; ++frame) {  // in three times drain.delay_us
      ASSERT_EQ(shuffle.receiver()->receive(batch), Outcome::done);
      taken += batch.row_count();
      batch.release();
      cluster_.sleep(base::kMillisecond / 2);
    }
    EXPECT_EQ(worker(2).metrics().frames_spilled, 0u);
    cluster_.sleep(20 * base::kMillisecond);
    EXPECT_GT(worker(2).metrics().frames_spilled, 0u);
    while (shuffle.receiver()->receive(batch) == Outcome::done) taken += batch.row_count();
    shuffle.close();
    end(1);
  });
  cluster_.spawn(1, 1, [&] {
    Shuffle any = open_for_any(2);
    Shuffle other = open(2, 1);
    EXPECT_EQ(take_rows(other), 1u);
    other.close();
    Batch batch;
    while (any.receiver()->receive(batch) == Outcome::done) taken += batch.row_count();
    any.close();
    end(2);
  });
  run();
  EXPECT_EQ(taken, kRows);
}

// Worker 2 needs no row, so all are worker 1's. It gets a copy after a batch that it has held for long, and none after one that it has not.
TEST_F(NodeEndTest, a_worker_that_holds_batches_for_long_gets_copies_until_it_is_quick_again) {
  ASSERT_TRUE(cluster_.open_sessions().ok()) << cluster_.world().report();
  query_ = cluster_.session(0).begin_query();
  cluster_.spawn(0, 0, [&] {
    Shuffle shuffle = open_for_any(0);
    for (uint64_t row = 0; row < 5; ++row) {
      ASSERT_EQ(shuffle.sender<uint64_t>()->send(0, row), Outcome::done);
      ASSERT_EQ(shuffle.sender()->flush(), Outcome::done);
    }
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    shuffle.close();
    end(0);
  });
  cluster_.spawn(1, 0, [&] {
    Shuffle shuffle = open_for_any(1);
    const std::array<bool, 5> is_held_long = {false, true, true, false, false};
    const std::array<bool, 5> is_copy = {false, false, true, true, false};
    for (size_t i = 0; i < is_copy.size(); ++i) {
      Batch batch;
      ASSERT_EQ(shuffle.receiver()->receive(batch), Outcome::done);
      EXPECT_EQ(batch.rows<uint64_t>()[0], i);
      EXPECT_EQ(worker(1).metrics().held_frames, is_copy[i] ? 0u : 1u) << "batch " << i;
      if (is_held_long[i]) cluster_.sleep(2 * base::kMillisecond);  // drain.delay_us is 1000
    }
    Batch batch;
    EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
    shuffle.close();
    end(1);
  });
  cluster_.spawn(1, 1, [&] {
    Shuffle shuffle = open_for_any(2);
    EXPECT_EQ(shuffle.receiver()->stop(), Outcome::done);
    shuffle.close();
    end(2);
  });
  run();
}

}  // namespace
}  // namespace faro::test
