// Lanes that end at nodes (lane.ends = node), through the public API: rows for workers that share them, in threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

struct Row {
  uint32_t sender;
  uint32_t receiver;
  uint64_t number;  // among those of that sender for that receiver
};

class NodeLanes : public ShuffleApi, public testing::WithParamInterface<const char*> {
 protected:
  void open_nodes(uint32_t nodes, const char* workers, SettingList more = {}) {
    more.insert(more.begin(),
                {{"transport", GetParam()}, {"cluster.workers", workers}, {"lane.ends", "node"}});
    open(nodes, more);
  }
};

// Each row for another worker than the one before: frames of one row each, and rings that hold 64 of them.
TEST_P(NodeLanes, rows_of_all_for_all_arrive_once_and_in_order) {
  constexpr uint64_t kRows = 2'000;  // from each worker to each
  open_nodes(2, "3,2");
  const QueryId id = session().begin_query();
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), spec(id, 0, sizeof(Row)));
    const auto sender = value_of(shuffle.sender<Row>());
    const uint32_t workers = cluster_->worker_count();
    for (uint64_t number = 0; number < kRows; ++number) {
      for (uint32_t to = 0; to < workers; ++to)
        ASSERT_EQ(sender.send(to, Row{me, to, number}), Outcome::done);
    }
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    std::map<uint32_t, uint64_t> next;
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      for (const std::span<const std::byte> bytes : batch.each_row()) {
        Row row;
        std::memcpy(&row, bytes.data(), sizeof row);
        EXPECT_EQ(row.receiver, me);
        EXPECT_EQ(row.number, next[row.sender]++) << "of worker " << row.sender;
      }
    }
    EXPECT_EQ(next.size(), workers);
    for (const auto& [from, count] : next) EXPECT_EQ(count, kRows) << "of worker " << from;
    close_and_end(shuffle, me, id);
  });
}

TEST_P(NodeLanes, a_row_for_several_workers_of_a_node_goes_to_all_or_to_none) {
  open_nodes(2, "1,3");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = spec(id, 0, 100, {0}, {1, 2, 3});
  std::atomic<uint64_t> sent{0};
  std::array<std::atomic<uint64_t>, 4> received{};
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      // Until nothing more has room, and then as often as there is.
      const auto sender = value_of(shuffle.sender());
      bool was_full = false;
      for (uint64_t tries = 0; sent < 500 || !was_full; ++tries) {
        const Outcome outcome = sender.broadcast(filled(100, 1), Wait::none());
        ASSERT_TRUE(outcome == Outcome::done || outcome == Outcome::would_wait);
        was_full |= outcome == Outcome::would_wait;
        sent += outcome == Outcome::done ? 1 : 0;
      }
      ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    } else {
      received[me] = take_rows(shuffle);
    }
    close_and_end(shuffle, me, id);
  });
  for (const uint32_t me : {1u, 2u, 3u}) EXPECT_EQ(received[me], sent) << "worker " << me;
}

// The fragments of rows for several workers lie between each other.
TEST_P(NodeLanes, rows_larger_than_a_ring_arrive_whole) {
  open_nodes(2, "2");
  const QueryId id = session().begin_query();
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), spec(id, 0, 0));
    const auto value = [&](uint32_t from, uint32_t to) { return static_cast<int>(16 * from + to); };
    for (uint32_t to = 0; to < 4; ++to) {
      ASSERT_EQ(shuffle.sender()->send(to, filled(50'000, value(me, to))), Outcome::done);
      ASSERT_EQ(shuffle.sender()->send(to, filled(7, value(me, to))), Outcome::done);
    }
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    uint64_t rows = 0;
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      for (const std::span<const std::byte> row : batch.each_row()) {
        ++rows;
        const std::vector<std::byte> expected = filled(row.size(), value(batch.sender(), me));
        EXPECT_TRUE(std::ranges::equal(row, expected));
      }
    }
    EXPECT_EQ(rows, 8u);
    close_and_end(shuffle, me, id);
  });
}

TEST_P(NodeLanes, what_one_worker_leaves_does_not_end_the_others) {
  open_nodes(2, "2");
  const QueryId id = session().begin_query();
  // Worker 3 needs no row; the others get all of theirs.
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), spec(id, 0, 8));
    if (me == 3) {
      EXPECT_EQ(shuffle.receiver()->stop(), Outcome::done);
    }
    const auto sender = value_of(shuffle.sender());
    for (uint64_t number = 0; number < 1000; ++number) {
      for (uint32_t to = 0; to < 4; ++to) {
        const Outcome outcome = sender.send(to, filled(8, 1));
        ASSERT_EQ(outcome, Outcome::done);
      }
    }
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    if (me != 3) {
      EXPECT_EQ(take_rows(shuffle), 4000u);
    }
    close_and_end(shuffle, me, id);
  });
}

// Worker 1 is armed under an event loop that never comes back to it. Every second time it is the one that is rung for what comes for
// worker 2, which would sleep for 10 s then.
TEST_P(NodeLanes, an_event_loop_that_never_comes_delays_no_other_worker) {
  constexpr uint64_t kRows = 12;
  open_nodes(2, "1,2", {{"wait.sleep_ms", "10000"}});
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = spec(id, 0, 8, {0}, {2});
  std::atomic<uint64_t> received{0};
  std::thread receiving([&] {
    Shuffle shuffle = open_shuffle(worker(2), stage);
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) received += batch.row_count();
    shuffle.close();
    worker(2).release_ownership();
  });
  ASSERT_TRUE(is_ok(worker(1).on_ready([] {})));
  Shuffle shuffle = open_shuffle(worker(0), stage);
  for (uint64_t row = 1; row <= kRows; ++row) {
    while (worker(2).metrics().sleeps < row) std::this_thread::yield();
    while (worker(1).arm([] { return false; }) != Outcome::would_wait) continue;
    send_now(shuffle, filled(8, 1));
    while (received < row) std::this_thread::yield();
  }
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  shuffle.close();
  receiving.join();
}

TEST_P(NodeLanes, many_queries_one_after_the_other_leave_nothing_behind) {
  open_nodes(2, "3");
  for (int query = 0; query < 20; ++query) expect_working();
  for (uint32_t node = 0; node < 2; ++node) {
    for (const LaneMetrics& lane : session(node).metrics().lanes)
      EXPECT_EQ(lane.unreleased_bytes, 0u);
  }
}

// Both stages come by the same number in the same ring, one after the other.
TEST_P(NodeLanes, a_later_stage_of_a_sender_is_received_before_an_earlier_one) {
  open_nodes(2, "1,2", {{"ring.per_lane", "1"}});
  const QueryId id = session().begin_query();
  for (const uint32_t stage : {0u, 1u}) {
    Shuffle shuffle = open_shuffle(worker(0), spec(id, stage, 8, {0}, {2}));
    ASSERT_EQ(shuffle.sender()->send(0, filled(8, 1)), Outcome::done);
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
  }
  for (const uint32_t stage : {1u, 0u}) {
    Shuffle shuffle = open_shuffle(worker(2), spec(id, stage, 8, {0}, {2}));
    EXPECT_EQ(take_rows(shuffle), 1u) << "stage " << stage;
  }
}

TEST_P(NodeLanes, a_row_that_is_written_in_place_keeps_the_lane_until_it_is_committed) {
  open_nodes(2, "1,2");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = spec(id, 0, 8, {0}, {1, 2});
  Shuffle shuffle = open_shuffle(worker(0), stage);
  RowClaim claim;
  ASSERT_EQ(shuffle.sender()->claim(0, 8, claim), Outcome::done);
  expect_failed(shuffle.sender()->send(1, filled(8, 1), Wait::none()), shuffle, Code::wrong_state,
                {"open claim for worker 1"});
  std::memset(claim.data().data(), 1, 8);
  EXPECT_TRUE(is_ok(claim.commit()));
  EXPECT_EQ(shuffle.sender()->send(1, filled(8, 1)), Outcome::done);
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  for (const uint32_t me : {1u, 2u}) {
    Shuffle at = open_shuffle(worker(me), stage);
    EXPECT_EQ(take_rows(at), 1u);
    at.close();
  }
}

INSTANTIATE_TEST_SUITE_P(Over, NodeLanes, testing::Values("shm", "tcp"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace faro::test
