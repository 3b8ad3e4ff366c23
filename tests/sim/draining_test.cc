// When frames that nobody receives are spilled (native/DESIGN.md#hc-3), by the simulated clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "faro/exchange.h"
#include "faro/session.h"
#include "faro/shuffle.h"
#include "sim/query_on_nodes.h"

namespace faro::test {
namespace {

constexpr uint32_t kRowBytes = 100;
constexpr uint64_t kRowsOfRing = 4096 / kRowBytes;
constexpr uint64_t kMemory = 96 * 1024;

const std::vector<std::byte> kRow(kRowBytes, std::byte{7});

void send(const Shuffle& shuffle, uint64_t rows) {
  for (uint64_t row = 0; row < rows; ++row)
    ASSERT_EQ(shuffle.sender()->send(0, kRow), Outcome::done);
}

/// At least one batch and `rows` rows. Answers how many.
uint64_t receive(const Shuffle& shuffle, uint64_t rows) {
  Batch batch;
  uint64_t received = 0;
  do {
    EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::done);
    received += batch.row_count();
  } while (received < rows && !testing::Test::HasFailure());
  return received;
}

class Draining : public QueryOnNodes {
 protected:
  static constexpr base::Nanoseconds kLongestDelay = 16 * kDrainDelay;

  void start(uint32_t nodes) { QueryOnNodes::start(nodes, {{"overflow.memory_bytes", kMemory}}); }
  Shuffle open(Worker& worker, uint32_t stage, uint32_t sender, uint32_t receiver) {
    return open(worker, query_, stage, sender, receiver);
  }
  static Shuffle open(Worker& worker, const QueryId& query, uint32_t stage, uint32_t sender,
                      uint32_t receiver) {
    return QueryOnNodes::open(worker, query, stage, kRowBytes, {sender}, {receiver});
  }
  uint64_t spilled(uint32_t node) { return at(node).bytes_spilled; }

  /// Two nodes that send each other `rows` rows, all of them before they receive any. `sent` is called by each in between.
  void send_first(uint64_t rows, std::function<void(uint32_t node)> sent = {}) {
    for (uint32_t node = 0; node < 2; ++node) {
      spawn(node, [this, node, rows, sent](Worker& worker) {
        // By a stage each: it is for the query that the worker sends first.
        Shuffle out = open(worker, node, node, 1 - node);
        Shuffle in = open(worker, 1 - node, 1 - node, node);
        send(out, rows);
        if (sent) sent(node);
        end(out);
        EXPECT_EQ(receive(in, rows), rows);
        end(in);
      });
    }
  }
};

TEST_F(Draining, does_not_wait_for_the_delay_where_a_program_sends_everything_first) {
  static constexpr uint64_t kRows = 12 * kRowsOfRing;
  start(2);
  send_first(kRows);
  run();
  EXPECT_LT(passed(), kDrainDelay);
  for (uint32_t node = 0; node < 2; ++node) {
    EXPECT_GT(spilled(node), 9 * kRowsOfRing * kRowBytes) << node;
    EXPECT_EQ(metrics(node).overflow_file_peak_bytes, 0u) << node;
  }
}

// An event loop waits by a condition that makes its calls.
TEST_F(Draining, does_not_wait_for_the_delay_where_turns_only_send) {
  static constexpr uint64_t kRows = 6 * kRowsOfRing;
  start(2);
  for (uint32_t node = 0; node < 2; ++node) {
    spawn(node, [this, node](Worker& worker) {
      Shuffle out = open(worker, node, node, 1 - node);
      Shuffle in = open(worker, 1 - node, 1 - node, node);
      uint64_t sent = 0;
      const auto turn = [&] {
        while (sent < kRows && out.sender()->send(0, kRow, Wait::none()) == Outcome::done) ++sent;
        return sent == kRows;
      };
      EXPECT_EQ(worker.wait_until(turn), Outcome::done);
      end(out);
      EXPECT_EQ(receive(in, kRows), kRows);
      end(in);
    });
  }
  run();
  EXPECT_LT(passed(), kDrainDelay);
}

// Two thirds of overflow's memory, and nothing of the file. Behind that each ring's worth of rows takes the delay.
TEST_F(Draining, is_early_within_a_share_of_the_memory_and_slow_behind_it) {
  static constexpr uint64_t kRows = 36 * kRowsOfRing;
  start(2);
  bool is_sent = false;
  send_first(kRows, [&](uint32_t node) { is_sent |= node == 0; });
  base::Nanoseconds moved_at = 0;
  base::Nanoseconds least_delay = 100 * kSecond;
  bool was_in_file = false;
  cluster_->spawn(0, 0, [&] {
    sleep_until(kDrainDelay / 2);
    EXPECT_GT(metrics(0).overflow_memory_bytes, kMemory / 2);
    EXPECT_LE(metrics(0).overflow_memory_bytes, kMemory * 2 / 3);
    EXPECT_EQ(metrics(0).overflow_file_peak_bytes, 0u);
    uint64_t before = spilled(0);
    while (!is_sent) {
      cluster_->sleep(kSecond / 100);
      was_in_file |= metrics(0).overflow_file_bytes > 0;
      const uint64_t moved = spilled(0) - std::exchange(before, spilled(0));
      if (is_sent || moved == 0) continue;
      EXPECT_LE(moved, 2 * kRing);
      if (moved_at != 0) least_delay = std::min(least_delay, passed() - moved_at);
      moved_at = passed();
    }
  });
  run();
  EXPECT_TRUE(was_in_file) << "memory has lasted";
  EXPECT_GE(least_delay, kDrainDelay * 9 / 10);
  EXPECT_LT(least_delay, 3 * kDrainDelay) << "nothing was spilled";
}

// Node 1 receives the rows of stage 0 and sends rows of stage 1, which node 2 is slow to take. That is what node 0 is to feel.
TEST_F(Draining, leaves_the_input_of_an_operator_whose_output_waits_in_its_ring) {
  static constexpr uint64_t kRows = 6 * kRowsOfRing;
  start(3);
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, 0, 1);
    send(out, kRows);
    end(out);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, 0, 1);
    Shuffle out = open(worker, 1, 1, 2);
    const uint64_t received = receive(in, 1);
    send(out, kRows);
    EXPECT_EQ(received + receive(in, kRows - received), kRows);
    end(in);
    end(out);
  });
  spawn(2, [&](Worker& worker) {
    Shuffle in = open(worker, 1, 1, 2);
    sleep_until(kLongestDelay - kDrainDelay);
    EXPECT_EQ(spilled(1), 0u);
    // Without end it would be a deadlock, if node 2 waited for what lies behind these rows.
    sleep_until(kLongestDelay + 2 * kDrainDelay);
    EXPECT_GT(spilled(1), 0u);
    EXPECT_LE(spilled(1), kRing);
    EXPECT_LT(cluster_->session(1).worker(0).metrics().sleeps, 100u)
        << "it sleeps until something is due";
    end(in);
  });
  run();
}

TEST_F(Draining, is_not_early_for_a_query_for_which_nothing_is_sent) {
  start(2);
  const QueryId other = cluster_->session(0).begin_query();
  static constexpr uint64_t kRows = 8 * kRowsOfRing;
  bool is_full = false;
  bool is_sent = false;
  spawn(0, [&](Worker& worker) {
    Shuffle unpolled = open(worker, other, 1, 0, 1);
    Shuffle in = open(worker, 1, 1, 0);
    Shuffle out = open(worker, 0, 0, 1);
    while (unpolled.sender()->send(0, kRow, Wait::none()) == Outcome::done) {
    }
    is_full = true;
    send(out, kRows);
    end(out);
    end(in);
    end(unpolled);
    EXPECT_EQ(worker.end_query(other), Outcome::done);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle unpolled = open(worker, other, 1, 0, 1);
    Shuffle in = open(worker, 0, 0, 1);
    Shuffle out = open(worker, 1, 1, 0);
    while (!is_full) cluster_->sleep(1'000'000);
    send(out, kRows);
    is_sent = true;
    EXPECT_GT(in.metrics().received[0].rows_spilled, 0u);
    EXPECT_EQ(unpolled.metrics().received[0].rows_spilled, 0u);
    end(out);
    end(in);
    end(unpolled);
    EXPECT_EQ(worker.end_query(other), Outcome::done);
  });
  run();
  EXPECT_TRUE(is_sent);
}

// The call has ended, and another one waits.
TEST_F(Draining, counts_rows_as_taken_by_an_exchange_only_while_that_is_called) {
  start(2);
  bool has_ended = false;
  bool is_sent = false;
  spawn(0, [&](Worker& worker) {
    Shuffle out = open(worker, 0, 0, 1);
    cluster_->world().wait_until([&] { return has_ended; }, base::kForever, "the call to end");
    send(out, 3 * kRowsOfRing);
    is_sent = true;
    cluster_->session(1).worker(0).wake();
    end(out);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle in = open(worker, 0, 0, 1);
    EXPECT_EQ(worker.exchange(
                  in, nullptr, [](Batch&) {}, Wait::none()),
              Outcome::would_wait);
    has_ended = true;
    EXPECT_EQ(worker.wait_until([&] { return is_sent; }), Outcome::done);
    EXPECT_GT(spilled(1), 0u);
    end(in);
  });
  run();
}

// Node 0 is ahead: node 1 is in the stage before, and has not begun with this one.
TEST_F(Draining, is_not_early_for_a_stage_that_is_not_open) {
  start(2);
  bool is_sent = false;
  spawn(0, [&](Worker& worker) {
    Shuffle in = open(worker, 0, 1, 0);
    Shuffle next = open(worker, 1, 0, 1);
    while (next.sender()->send(0, kRow, Wait::none()) == Outcome::done) {
    }
    sleep_until(kDrainDelay / 2);
    EXPECT_FALSE(is_sent);
    EXPECT_EQ(spilled(1), 0u);
    end(in);
    end(next);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle out = open(worker, 0, 1, 0);
    send(out, 3 * kRowsOfRing);
    is_sent = true;
    end(out);
    Shuffle next = open(worker, 1, 0, 1);
    end(next);
  });
  run();
  EXPECT_TRUE(is_sent);
}

// The worker wants rows, too: they may lie behind those that it does not want, and come meanwhile.
TEST_F(Draining, is_not_early_while_the_worker_waits_for_rows_as_well) {
  start(2);
  spawn(0, [&](Worker& worker) {
    Shuffle unwanted = open(worker, 0, 0, 1);
    Shuffle wanted = open(worker, 1, 0, 1);
    Shuffle in = open(worker, 2, 1, 0);
    send(unwanted, 3 * kRowsOfRing);
    for (Shuffle* each : {&unwanted, &wanted, &in}) end(*each);
  });
  spawn(1, [&](Worker& worker) {
    Shuffle unwanted = open(worker, 0, 0, 1);
    Shuffle wanted = open(worker, 1, 0, 1);
    Shuffle out = open(worker, 2, 1, 0);
    Batch batch;
    const auto turn = [&] {
      while (out.sender()->send(0, kRow, Wait::none()) == Outcome::done) {
      }
      return wanted.receiver()->receive(batch, Wait::none()) != Outcome::would_wait;
    };
    EXPECT_EQ(worker.wait_until(turn, Wait::at_most(std::chrono::nanoseconds(kDrainDelay / 2))),
              Outcome::deadline);
    EXPECT_EQ(spilled(1), 0u);
    EXPECT_EQ(worker.wait_until(turn, Wait::at_most(std::chrono::nanoseconds(4 * kDrainDelay))),
              Outcome::deadline);
    EXPECT_GT(spilled(1), 0u) << "nothing lay there";
    for (Shuffle* each : {&out, &wanted, &unwanted}) end(*each);
  });
  run();
}

// Both have received of each other before, so neither sends first; each waits for the room that the other's rows take.
TEST_F(Draining, takes_the_delay_where_the_other_end_waits_for_the_same) {
  static constexpr uint64_t kRows = 4 * kRowsOfRing;
  start(2);
  for (uint32_t node = 0; node < 2; ++node) {
    spawn(node, [this, node](Worker& worker) {
      Shuffle out = open(worker, node, node, 1 - node);
      Shuffle in = open(worker, 1 - node, 1 - node, node);
      send(out, 1);
      (void)out.sender()->flush();
      EXPECT_EQ(receive(in, 1), 1u);
      send(out, kRows);
      end(out);
      EXPECT_EQ(receive(in, kRows), kRows);
      end(in);
    });
  }
  run();
  EXPECT_GT(passed(), kDrainDelay);
  EXPECT_LT(passed(), kLongestDelay);
}

// Each waits for the next one, and none for the one that waits for it: they are blocked by rows of the stage in which they send.
TEST_F(Draining, takes_the_delay_where_workers_wait_in_a_circle_within_a_stage) {
  static constexpr uint64_t kRows = 4 * kRowsOfRing;
  constexpr uint32_t kNodes = 3;
  start(kNodes);
  for (uint32_t node = 0; node < kNodes; ++node) {
    spawn(node, [this, node](Worker& worker) {
      Result<Shuffle> shuffle = worker.open_shuffle({query_, 0, kRowBytes, {0, 1, 2}, {0, 1, 2}});
      ASSERT_TRUE(shuffle.ok());
      const ShuffleSender sender = *shuffle->sender();
      const uint32_t next = (node + 1) % kNodes;
      EXPECT_EQ(sender.send(next, kRow), Outcome::done);
      (void)sender.flush();
      EXPECT_EQ(receive(*shuffle, 1), 1u);
      for (uint64_t row = 0; row < kRows; ++row) ASSERT_EQ(sender.send(next, kRow), Outcome::done);
      EXPECT_EQ(sender.finish(), Outcome::done);
      EXPECT_EQ(receive(*shuffle, kRows), kRows);
      end(*shuffle);
    });
  }
  run();
  EXPECT_GT(passed(), kDrainDelay);
  EXPECT_LT(passed(), kLongestDelay);
}

}  // namespace
}  // namespace faro::test
