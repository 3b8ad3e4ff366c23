// Broadcasts to nodes (Delivery::replicate), through the public API: rows that each worker of a node reads where they lie, in threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
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

class Replicate : public ShuffleApi, public testing::WithParamInterface<Ends> {
 protected:
  void open_nodes(uint32_t nodes, const char* workers, SettingList more = {}) {
    more.insert(more.begin(), {{"transport", GetParam().transport},
                               {"cluster.workers", workers},
                               {"lane.ends", GetParam().lanes_end_at}});
    open(nodes, more);
  }
  ShuffleSpec to_all(const QueryId& id, uint32_t stage, uint32_t row_bytes,
                     std::vector<uint32_t> senders = {}, std::vector<uint32_t> receivers = {}) {
    ShuffleSpec made = spec(id, stage, row_bytes, std::move(senders), std::move(receivers));
    made.delivery = Delivery::replicate;
    return made;
  }
  /// Rows from 0 on to all, and the end.
  static void send_rows(Shuffle& shuffle, uint64_t rows) {
    const auto sender = value_of(shuffle.sender<uint64_t>());
    for (uint64_t row = 0; row < rows; ++row) ASSERT_EQ(sender.send(0, row), Outcome::done);
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
  }
  /// Takes rows of any sender up to the end: of each they come in order, from 0 on. How many come.
  static uint64_t take_in_order(Shuffle& shuffle, uint64_t from = 0) {
    std::map<uint32_t, uint64_t> next;
    uint64_t rows = 0;
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      uint64_t& expected = next.emplace(batch.sender(), from).first->second;
      for (const uint64_t row : batch.rows<uint64_t>()) EXPECT_EQ(row, expected++);
      rows += batch.row_count();
    }
    EXPECT_TRUE(is_ok(shuffle.status()));
    return rows;
  }
  uint64_t bytes_spilled(uint32_t node) {
    uint64_t bytes = 0;
    for (const WorkerMetrics& each : session(node).metrics().workers) bytes += each.bytes_spilled;
    return bytes;
  }
};

TEST_P(Replicate, every_worker_gets_each_row_in_order_and_it_travels_once_to_each_node) {
  constexpr uint64_t kRows = 3'000;
  open_nodes(3, "3,2,1");
  const QueryId id = session().begin_query();
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), to_all(id, 0, sizeof(uint64_t)));
    send_rows(shuffle, kRows);
    EXPECT_EQ(take_in_order(shuffle), 6 * kRows);
    close_and_end(shuffle, me, id);
  });
  uint64_t sent = 0;
  uint64_t received = 0;
  uint64_t bytes = 0;
  for (uint32_t node = 0; node < 3; ++node) {
    for (const LaneMetrics& lane : session(node).metrics().lanes) {
      sent += lane.frames_sent;
      received += lane.frames_received;
      bytes += lane.bytes_sent;
      EXPECT_EQ(lane.unreleased_bytes, 0u);
    }
  }
  EXPECT_EQ(sent, received);
  const uint64_t once = 6 * kRows * sizeof(uint64_t) * 3;
  EXPECT_GE(bytes, once);
  EXPECT_LT(bytes, once * 3 / 2);  // with headers, OPEN and FINISH
}

// There is one receiver, and the listed workers alone get anything.
TEST_P(Replicate, there_is_one_receiver_which_is_all_listed_workers) {
  open_nodes(2, "2");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_all(id, 0, 8, {0}, {3, 0, 2});
  cluster_->run_workers([&](uint32_t me) {
    if (me == 1) return worker(me).release_ownership();
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      expect_failed(shuffle.sender()->send(1, filled(8, 1), Wait::none()), shuffle,
                    Code::invalid_argument, {"receiver 1 does not exist (0 … 0)"});
      ASSERT_EQ(shuffle.sender()->broadcast(filled(8, 1)), Outcome::done);
      ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    }
    EXPECT_EQ(take_rows(shuffle), 1u);
    shuffle.close();
    worker(me).release_ownership();
  });
}

TEST_P(Replicate, groups_are_refused) {
  open_nodes(2, "1");
  const QueryId id = session().begin_query();
  ShuffleSpec stage = to_all(id, 4, 8);
  stage.groups = {{0}, {0}};
  expect_error(worker(0).open_shuffle(stage).status(), Code::invalid_argument,
               {"stage 4", "2 groups", "delivery = replicate", "leave groups empty"});
}

// Workers 2 and 3 make no call before worker 1 has come to the end. So all that does not stay in the ring is moved for them, in one
// copy for both, which is read back from the file where there is little memory.
TEST_P(Replicate, what_some_have_not_read_is_moved_once_for_all_of_them) {
  constexpr uint64_t kRows = 40'000;
  for (const char* const memory : {"64MiB", "64KiB"}) {
    open_nodes(2, "1,3", {{"drain.delay_us", "100"}, {"overflow.memory_bytes", memory}});
    const QueryId id = session().begin_query();
    const ShuffleSpec stage = to_all(id, 0, 8, {0}, {1, 2, 3});
    std::atomic<uint32_t> opened{0};
    std::atomic<bool> is_over{false};
    uint64_t spilled = 0;
    cluster_->run_workers([&](uint32_t me) {
      Shuffle shuffle = open_shuffle(worker(me), stage);
      ++opened;
      while (opened < 4) std::this_thread::yield();
      if (me == 0) {
        send_rows(shuffle, kRows);
      } else {
        while (me != 1 && !is_over) std::this_thread::yield();
        EXPECT_EQ(take_in_order(shuffle), kRows);
        if (me == 1) spilled = bytes_spilled(1);
        is_over = true;
      }
      close_and_end(shuffle, me, id);
    });
    EXPECT_GT(spilled, kRows * 8 / 2);
    EXPECT_LE(spilled, kRows * 8);
    EXPECT_EQ(session(1).metrics().overflow_memory_bytes, 0u);
    EXPECT_EQ(session(1).metrics().overflow_file_bytes, 0u);
    cluster_ = nullptr;
  }
}

// Worker 1 has read all, and moved what did not stay in the ring. Then workers 2 and 3 hold all that was moved.
TEST_P(Replicate, what_was_moved_is_charged_once_however_many_hold_it) {
  constexpr uint64_t kRows = 8'000;
  open_nodes(2, "1,3", {{"drain.delay_us", "100"}});
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_all(id, 0, 8, {0}, {1, 2, 3});
  std::vector<Shuffle> shuffles;
  for (uint32_t number = 0; number < 4; ++number)
    shuffles.push_back(open_shuffle(worker(number), stage));
  worker(0).release_ownership();
  std::thread sender([&] {
    send_rows(shuffles[0], kRows);
    worker(0).release_ownership();
  });
  EXPECT_EQ(take_in_order(shuffles[1]), kRows);
  sender.join();
  const uint64_t moved_rows = bytes_spilled(1) / sizeof(uint64_t);
  const uint64_t charged = session(1).metrics().overflow_memory_bytes;
  EXPECT_GT(moved_rows, kRows / 2);
  EXPECT_GT(charged, moved_rows * sizeof(uint64_t));
  std::vector<Batch> held;
  for (const uint32_t number : {2u, 3u}) {
    for (uint64_t rows = 0; rows < moved_rows; rows += held.back().row_count()) {
      held.push_back(take_batch(shuffles[number]));
      ASSERT_LE(session(1).metrics().overflow_memory_bytes, charged) << "worker " << number;
    }
  }
  held.clear();
  for (const uint32_t number : {2u, 3u}) {
    EXPECT_EQ(take_in_order(shuffles[number], moved_rows), kRows - moved_rows);
    worker(number).release_ownership();
  }
  EXPECT_EQ(session(1).metrics().overflow_memory_bytes, 0u);
  worker(1).release_ownership();
  cluster_->run_workers([&](uint32_t me) { close_and_end(shuffles[me], me, id); });
}

TEST_P(Replicate, a_worker_that_stops_keeps_no_row_from_the_others) {
  constexpr uint64_t kRows = 5'000;
  open_nodes(2, "1,3", {{"drain.delay_us", "10000000"}});
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_all(id, 0, 8, {0}, {1, 2, 3});
  std::atomic<bool> has_stopped{false};
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      send_rows(shuffle, kRows);
    } else if (me == 2) {
      (void)take_batch(shuffle);
      EXPECT_EQ(shuffle.receiver()->stop(), Outcome::done);
      has_stopped = true;
    } else {
      while (!has_stopped) std::this_thread::yield();
      EXPECT_EQ(take_in_order(shuffle), kRows);
    }
    close_and_end(shuffle, me, id);
  });
  for (const LaneMetrics& lane : session(1).metrics().lanes) EXPECT_EQ(lane.unreleased_bytes, 0u);
}

TEST_P(Replicate, senders_stop_when_all_listed_workers_have) {
  open_nodes(3, "1,2,1");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_all(id, 0, 8, {0}, {1, 2, 3});
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      const auto sender = value_of(shuffle.sender<uint64_t>());
      Outcome outcome = Outcome::done;
      while (outcome == Outcome::done) outcome = sender.send(0, uint64_t{1});
      EXPECT_EQ(outcome, Outcome::stopped);
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    } else {
      (void)take_batch(shuffle);
      EXPECT_EQ(shuffle.receiver()->stop(), Outcome::done);
    }
    close_and_end(shuffle, me, id);
  });
  for (const uint32_t node : {1u, 2u}) {
    for (const LaneMetrics& lane : session(node).metrics().lanes)
      EXPECT_EQ(lane.unreleased_bytes, 0u);
  }
}

// Worker 3 opens when the rows have long been sent, and the others have read them.
TEST_P(Replicate, who_opens_late_gets_all_rows) {
  constexpr uint64_t kRows = 20'000;
  open_nodes(2, "1,3", {{"drain.delay_us", "100"}});
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_all(id, 0, 8, {0}, {1, 2, 3});
  std::atomic<uint32_t> over{0};
  cluster_->run_workers([&](uint32_t me) {
    while (me == 3 && over < 2) std::this_thread::yield();
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      send_rows(shuffle, kRows);
    } else {
      EXPECT_EQ(take_in_order(shuffle), kRows);
      ++over;
    }
    close_and_end(shuffle, me, id);
  });
}

TEST_P(Replicate, rows_larger_than_a_ring_come_whole_to_everybody) {
  constexpr uint32_t kRows = 40;
  open_nodes(2, "1,3");
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_all(id, 0, 0, {0}, {1, 2, 3});
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    const auto bytes_of = [](uint32_t row) { return row % 3 == 0 ? size_t{7} : size_t{20'000}; };
    if (me == 0) {
      for (uint32_t row = 0; row < kRows; ++row) {
        ASSERT_EQ(shuffle.sender()->send(0, filled(bytes_of(row), static_cast<int>(row))),
                  Outcome::done);
      }
      ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    } else {
      uint32_t next = 0;
      Batch batch;
      while (shuffle.receiver()->receive(batch) == Outcome::done) {
        for (const std::span<const std::byte> row : batch.each_row()) {
          EXPECT_EQ(row.size(), bytes_of(next));
          EXPECT_EQ(row.front(), static_cast<std::byte>(next));
          EXPECT_EQ(row.back(), static_cast<std::byte>(next));
          ++next;
        }
      }
      EXPECT_EQ(next, kRows);
    }
    close_and_end(shuffle, me, id);
  });
}

// The memory of a frame is given back when the last of those that read it has released it, not when the first has.
TEST_P(Replicate, a_batch_stays_while_one_worker_holds_it) {
  constexpr uint64_t kRows = 20'000;
  open_nodes(2, "1,2", {{"drain.delay_us", "10000000"}});
  const QueryId id = session().begin_query();
  const ShuffleSpec stage = to_all(id, 0, 8, {0}, {1, 2});
  std::atomic<bool> has_first{false};
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), stage);
    if (me == 0) {
      send_rows(shuffle, kRows);
    } else if (me == 1) {
      Batch held = take_batch(shuffle);
      const uint64_t rows = held.row_count();
      has_first = true;
      while (session(1).metrics().workers[1].rows_received < rows) std::this_thread::yield();
      uint64_t next = 0;
      for (const uint64_t row : held.rows<uint64_t>()) EXPECT_EQ(row, next++);
      held.release();
      EXPECT_EQ(take_in_order(shuffle, rows), kRows - rows);
    } else {
      while (!has_first) std::this_thread::yield();
      EXPECT_EQ(take_in_order(shuffle), kRows);
    }
    close_and_end(shuffle, me, id);
  });
}

TEST_P(Replicate, rows_of_each_sender_can_be_taken_alone_and_merged) {
  constexpr uint64_t kRows = 5'000;
  open_nodes(2, "2");
  const QueryId id = session().begin_query();
  cluster_->run_workers([&](uint32_t me) {
    Shuffle shuffle = open_shuffle(worker(me), to_all(id, 0, 8));
    send_rows(shuffle, kRows);
    Result<MergingReceiver<uint64_t>> merged = MergingReceiver<uint64_t>::make(shuffle);
    ASSERT_TRUE(is_ok(merged));
    uint64_t row = 0;
    uint64_t count = 0;
    for (; merged->next(row) == Outcome::done; ++count) EXPECT_EQ(row, count / 4);
    EXPECT_EQ(count, 4 * kRows);
    close_and_end(shuffle, me, id);
  });
}

// They are of one query, and between the same workers.
TEST_P(Replicate, stages_with_each_delivery_run_beside_each_other) {
  constexpr uint64_t kRows = 5'000;
  open_nodes(2, "2,3");
  const QueryId id = session().begin_query();
  std::atomic<uint64_t> of_nodes{0};
  cluster_->run_workers([&](uint32_t me) {
    std::vector<Shuffle> stages;
    for (uint32_t stage = 0; stage < 3; ++stage) {
      ShuffleSpec opened = spec(id, stage, 8);
      opened.delivery = static_cast<Delivery>(stage);
      stages.push_back(open_shuffle(worker(me), opened));
    }
    for (uint64_t row = 0; row < kRows; ++row) {
      for (Shuffle& stage : stages) {
        const uint32_t receivers[] = {5, 2, 1};
        const auto to = static_cast<uint32_t>(row % receivers[stage.spec().stage]);
        ASSERT_EQ(stage.sender<uint64_t>()->send(to, row), Outcome::done);
      }
    }
    for (Shuffle& stage : stages) ASSERT_EQ(stage.sender()->finish(), Outcome::done);
    EXPECT_EQ(take_rows(stages[0]), kRows);
    of_nodes += take_rows(stages[1]);
    EXPECT_EQ(take_in_order(stages[2]), 5 * kRows);
    for (uint32_t stage = 0; stage < 2; ++stage) stages[stage].close();
    close_and_end(stages[2], me, id);
  });
  EXPECT_EQ(of_nodes, 5 * kRows);
}

TEST_P(Replicate, workers_that_differ_in_delivery_fail_the_query_by_both) {
  open_nodes(2, "1,2");
  const QueryId id = session().begin_query();
  Shuffle sending = open_shuffle(worker(0), to_all(id, 0, 8, {0}, {1, 2}));
  ShuffleSpec other = spec(id, 0, 8, {0}, {1, 2});
  other.delivery = Delivery::node;
  Shuffle receiving = open_shuffle(worker(1), other);
  send_now(sending, filled(8, 1));
  Batch batch;
  EXPECT_EQ(receiving.receiver()->receive(batch), Outcome::failed);
  expect_error(receiving.status(), Code::stage_mismatch,
               {"sends with delivery = replicate", "opened it with delivery = node"});
}

INSTANTIATE_TEST_SUITE_P(Over, Replicate,
                         testing::Values(Ends{"shm", "node"}, Ends{"tcp", "node"},
                                         Ends{"shm", "both"}, Ends{"tcp", "both"}),
                         [](const auto& of) {
                           return std::string(of.param.transport) + "_" + of.param.lanes_end_at;
                         });

}  // namespace
}  // namespace faro::test
