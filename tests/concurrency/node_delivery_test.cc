// Delivery to nodes (Delivery::node), through the public API: rows that any worker of a node takes, in threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "faro/merge.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

struct Ends {
  const char* transport;
  const char* lanes_end_at;
};

class NodeDelivery : public ShuffleApi, public testing::WithParamInterface<Ends> {
 protected:
  void open_nodes(uint32_t nodes, const char* workers, SettingList more = {}) {
    more.insert(more.begin(), {{"transport", GetParam().transport},
                               {"cluster.workers", workers},
                               {"lane.ends", GetParam().lanes_end_at}});
    open(nodes, more);
  }
  ShuffleSpec to_nodes(const QueryId& id, uint32_t stage, uint32_t row_bytes,
                       std::vector<uint32_t> senders = {}, std::vector<uint32_t> receivers = {}) {
    ShuffleSpec made = spec(id, stage, row_bytes, std::move(senders), std::move(receivers));
    made.delivery = Delivery::node;
    return made;
  }
  uint64_t frames_received(uint32_t node) {
    uint64_t frames = 0;
    for (const LaneMetrics& lane : session(node).metrics().lanes) frames += lane.frames_received;
    return frames;
  }
  /// They look what has come.
  void look(uint32_t one, uint32_t other) {
    for (const uint32_t each : {one, other})
      (void)worker(each).wait_until([] { return false; }, Wait::none());
  }
  /// Rows from 0 on to receiver 0, and the end.
  static void send_rows(Shuffle& shuffle, uint64_t rows) {
    for (uint64_t row = 0; row < rows; ++row)
      ASSERT_EQ(shuffle.sender<uint64_t>()->send(0, row), Outcome::done);
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
  }
  /// Adds the rows of a batch to those that a node was handed out.
  void note_rows(const Batch& batch, uint32_t node) {
    const std::lock_guard lock(mutex_);
    for (const uint64_t row : batch.rows<uint64_t>())
      EXPECT_TRUE(handed_out_[node].insert(row).second) << "twice: " << row;
  }

  std::mutex mutex_;
  std::array<std::set<uint64_t>, 4> handed_out_;  // by node
};

TEST_P(NodeDelivery, each_row_is_handed_out_once_to_some_worker_of_its_node) {
  constexpr uint64_t kRows = 3'000;  // from each worker to each node
  open_nodes(3, "3,2,1");
  const QueryId id = session().begin_query();
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), to_nodes(id, 0, sizeof(uint64_t)));
    const auto sender = value_of(shuffle.sender<uint64_t>());
    for (uint64_t number = 0; number < kRows; ++number) {
      for (uint32_t node = 0; node < 3; ++node)
        ASSERT_EQ(sender.send(node, me * kRows + number), Outcome::done);
    }
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done)
      note_rows(batch, me < 3 ? 0 : me < 5 ? 1 : 2);
    close_and_end(shuffle, me, id);
  });
  for (uint32_t node = 0; node < 3; ++node) {
    EXPECT_EQ(handed_out_[node].size(), 6 * kRows);
    EXPECT_EQ(session(node).metrics().untaken_frames, 0u);
    EXPECT_EQ(session(node).metrics().untaken_streams, 0u);
  }
}

// The nodes are those of the listed workers, in the order in which they are first mentioned, and nobody else gets anything.
TEST_P(NodeDelivery, the_receivers_are_the_nodes_of_the_listed_workers_in_order_of_mention) {
  open_nodes(3, "2");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_nodes(id, 0, 8, {0}, {5, 2, 3});
  std::array<std::atomic<uint64_t>, 6> received{};
  for (const uint32_t me : {0u, 5u, 2u, 3u}) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      expect_failed(shuffle.sender()->send(2, filled(8, 1), Wait::none()), shuffle,
                    Code::invalid_argument, {"receiver 2 does not exist (0 … 1)"});
      for (uint64_t row = 0; row < 3; ++row)
        ASSERT_EQ(shuffle.sender()->send(0, filled(8, 1)), Outcome::done);
      ASSERT_EQ(shuffle.sender()->send(1, filled(8, 2)), Outcome::done);
      ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    } else {
      Batch batch;
      while (shuffle.receiver()->receive(batch) == Outcome::done) {
        received[me] += batch.row_count();
        for (const std::span<const std::byte> row : batch.each_row())
          EXPECT_EQ(row[0], std::byte(me == 5 ? 1 : 2));
      }
    }
    shuffle.close();
    worker(me).release_ownership();
  }
  EXPECT_EQ(received[5], 3u);
  EXPECT_EQ(received[2] + received[3], 1u);
}

// Worker 2 opens, and makes no call before worker 1 has come to the end.
TEST_P(NodeDelivery, a_worker_that_makes_no_call_keeps_no_row) {
  constexpr uint64_t kRows = 5'000;
  open_nodes(2, "1,2", {{"drain.delay_us", "10000000"}});
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_nodes(id, 0, 8, {0}, {1, 2});
  std::atomic<bool> has_opened{false};
  std::atomic<bool> is_over{false};
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 2) has_opened = true;
    while (!has_opened) std::this_thread::yield();
    if (me == 0) {
      send_rows(shuffle, kRows);
    } else if (me == 1) {
      EXPECT_EQ(take_rows(shuffle), kRows);
      is_over = true;
    } else {
      while (!is_over) std::this_thread::yield();
      EXPECT_EQ(take_rows(shuffle), 0u);
    }
    close_and_end(shuffle, me, id);
  });
}

TEST_P(NodeDelivery, a_worker_that_stops_leaves_its_rows_to_the_others) {
  constexpr uint64_t kRows = 5'000;
  open_nodes(2, "1,3");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_nodes(id, 0, 8, {0}, {1, 2, 3});
  std::atomic<uint64_t> received{0};
  std::atomic<uint32_t> stopped{0};
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      while (stopped < 2) std::this_thread::yield();
      send_rows(shuffle, kRows);
    } else if (me == 1) {
      received += take_rows(shuffle);
    } else {
      EXPECT_EQ(shuffle.receiver()->stop(), Outcome::done);
      ++stopped;
    }
    close_and_end(shuffle, me, id);
  });
  EXPECT_EQ(received, kRows);
}

TEST_P(NodeDelivery, senders_stop_when_all_listed_workers_of_a_node_have) {
  open_nodes(2, "1,2");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_nodes(id, 0, 8, {0}, {1, 2});
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      const auto sender = value_of(shuffle.sender<uint64_t>());
      Outcome outcome = Outcome::done;
      while (outcome == Outcome::done) outcome = sender.send(0, uint64_t{1});
      EXPECT_EQ(outcome, Outcome::stopped);
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    } else {
      Batch batch;
      EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::done);
      batch.release();
      EXPECT_EQ(shuffle.receiver()->stop(), Outcome::done);
    }
    close_and_end(shuffle, me, id);
  });
  for (const LaneMetrics& lane : session(1).metrics().lanes) EXPECT_EQ(lane.unreleased_bytes, 0u);
}

// Parts of a row go to one worker, also if another takes what lies before and behind it.
TEST_P(NodeDelivery, rows_larger_than_a_ring_arrive_whole_and_once) {
  constexpr uint64_t kRows = 40;
  open_nodes(2, "1,3");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_nodes(id, 0, 0, {0}, {1, 2, 3});
  std::atomic<uint64_t> received{0};
  std::array<std::atomic<uint32_t>, kRows> seen{};
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      for (uint64_t row = 0; row < kRows; ++row) {
        const size_t bytes = row % 3 == 0 ? 7 : 20'000;
        ASSERT_EQ(shuffle.sender()->send(0, filled(bytes, static_cast<int>(row))), Outcome::done);
      }
      ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    } else {
      Batch batch;
      while (shuffle.receiver()->receive(batch) == Outcome::done) {
        for (const std::span<const std::byte> row : batch.each_row()) {
          const auto number = static_cast<size_t>(row[0]);
          ASSERT_LT(number, kRows);
          EXPECT_EQ(row.size(), number % 3 == 0 ? 7u : 20'000u);
          EXPECT_EQ(row.front(), row.back());
          ++seen[number];
          ++received;
        }
      }
    }
    close_and_end(shuffle, me, id);
  });
  EXPECT_EQ(received, kRows);
  for (const auto& times : seen) EXPECT_EQ(times, 1u);
}

// They take one by one, and each holds what it has until all have one: as many copies as are needed are made, and no row is lost.
TEST_P(NodeDelivery, batches_that_all_workers_of_a_node_hold_are_each_another) {
  constexpr uint64_t kRows = 20'000;
  open_nodes(2, "1,3");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_nodes(id, 0, 8, {0}, {1, 2, 3});
  std::atomic<uint32_t> holding{0};
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      send_rows(shuffle, kRows);
    } else {
      Batch batch = take_batch(shuffle);
      ++holding;
      while (holding < 3) std::this_thread::yield();
      note_rows(batch, 1);
      batch.release();
      while (shuffle.receiver()->receive(batch) == Outcome::done) note_rows(batch, 1);
    }
    close_and_end(shuffle, me, id);
  });
  EXPECT_EQ(handed_out_[1].size(), kRows);
}

TEST_P(NodeDelivery, workers_that_differ_in_delivery_fail_the_query_by_both) {
  open_nodes(2, "1,2");
  for (const bool sends_to_nodes : {true, false}) {
    for (const bool opens_later : {true, false}) {
      const QueryId id = session().begin_query();
      const ShuffleSpec to_node = to_nodes(id, 0, 8, {0}, {1, 2});
      const ShuffleSpec to_worker = spec(id, 0, 8, {0}, {1, 2});
      Shuffle sending = open_shuffle(worker(0), sends_to_nodes ? to_node : to_worker);
      const ShuffleSpec& other = sends_to_nodes ? to_worker : to_node;
      Shuffle receiving;
      if (!opens_later) receiving = open_shuffle(worker(1), other);
      const uint64_t before = frames_received(1);
      send_now(sending, filled(8, 1));
      if (!sends_to_nodes) send_now(sending, filled(8, 1), 1);
      while (opens_later && frames_received(1) == before) look(1, 2);
      const std::string sent = sends_to_nodes ? "node" : "worker";
      const std::string read = sends_to_nodes ? "worker" : "node";
      Status why;
      if (opens_later) {
        why = worker(1).open_shuffle(other).status();
      } else {
        Batch batch;
        EXPECT_EQ(receiving.receiver()->receive(batch), Outcome::failed);
        why = receiving.status();
      }
      expect_error(why, Code::stage_mismatch,
                   {"worker 0 of node 0", "sends with delivery = " + sent, "worker 1 of node 1",
                    "opened it with delivery = " + read});
    }
  }
}

TEST_P(NodeDelivery, who_receives_from_one_sender_is_told_why_it_cannot) {
  open_nodes(2, "1,2");
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(1), to_nodes(id, 3, 8));
  Batch batch;
  expect_failed(shuffle.receiver()->receive_from(0, batch, Wait::none()), shuffle,
                Code::wrong_state, {"stage 3", "delivery = node", "receive"});
  expect_error(MergingReceiver<uint64_t>::make(shuffle).status(), Code::invalid_argument,
               {"stage 3", "delivery = node cannot be merged"});
}

TEST_P(NodeDelivery, counts_add_up_over_the_workers_of_a_node) {
  constexpr uint64_t kRows = 4'000;
  open_nodes(2, "1,3");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_nodes(id, 0, 8, {0}, {1, 2, 3});
  std::mutex mutex;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      send_rows(shuffle, kRows);
      const ShuffleMetrics sent = shuffle.metrics();
      ASSERT_EQ(sent.sent.size(), 1u);
      EXPECT_EQ(sent.sent[0].rows, kRows);
    } else {
      (void)take_rows(shuffle);
      const ShuffleMetrics received = shuffle.metrics();
      const std::lock_guard lock(mutex);
      rows += received.received[0].rows;
      bytes += received.received[0].bytes;
    }
    close_and_end(shuffle, me, id);
  });
  EXPECT_EQ(rows, kRows);
  EXPECT_EQ(bytes, 8 * kRows);
  uint64_t frames_sent = 0;
  for (const LaneMetrics& lane : session(0).metrics().lanes) frames_sent += lane.frames_sent;
  EXPECT_EQ(frames_sent, frames_received(1));
}

class DeliveryNeeds : public ShuffleApi {};

TEST_F(DeliveryNeeds, lanes_that_end_at_nodes) {
  const QueryId id = open_and_begin(1);
  ShuffleSpec stage = spec(id, 5, 8);
  stage.delivery = Delivery::node;
  expect_error(worker().open_shuffle(stage).status(), Code::invalid_argument,
               {"stage 5", "delivery = node", "lane.ends = workers", "set it to node"});
}

TEST_F(DeliveryNeeds, to_be_one_that_there_is) {
  open(1, {{"lane.ends", "both"}});
  ShuffleSpec stage = spec(session().begin_query(), 5, 8);
  for (const uint32_t number : {3, 255}) {
    stage.delivery = static_cast<Delivery>(number);
    expect_error(worker().open_shuffle(stage).status(), Code::invalid_argument,
                 {"stage 5", "delivery = " + std::to_string(number) + " is none of",
                  "worker, node, replicate"});
  }
}

INSTANTIATE_TEST_SUITE_P(Over, NodeDelivery,
                         testing::Values(Ends{"shm", "node"}, Ends{"tcp", "node"},
                                         Ends{"shm", "both"}, Ends{"tcp", "both"}),
                         [](const auto& of) {
                           return std::string(of.param.transport) + "_" + of.param.lanes_end_at;
                         });

}  // namespace
}  // namespace faro::test
