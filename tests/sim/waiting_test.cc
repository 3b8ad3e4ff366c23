// What a worker does before it waits (native/DESIGN.md#hc-2), where others can only go on because of
// it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster.h"
#include "sim/two_shuffles.h"
#include "wire/frame.h"

namespace faro::test {
namespace {

constexpr uint32_t kRing = 4096;
constexpr uint32_t kFrameOverhead = sizeof(wire::FrameHeader) + sizeof(wire::RowLength);
static_assert(wire::frame_limit(kRing) == kRing / 4);

// A row whose frame, if it is alone in it, takes that many bytes of the ring.
std::vector<std::byte> row_of_frame(uint32_t frame_bytes, uint8_t value) {
  return std::vector<std::byte>(frame_bytes - kFrameOverhead, std::byte{value});
}

// Two nodes with one ring each way; whoever misses a wake-up is seen to hang.
ClusterShape one_ring() {
  ClusterShape shape;
  shape.knobs.stall_limit = 2'000'000'000;
  shape.configure = [](Config& config, uint32_t) {
    EXPECT_TRUE(config.set("ring.per_lane", 1).ok());
    EXPECT_TRUE(config.set("ring.bytes", uint64_t{kRing}).ok());
    EXPECT_TRUE(config.set("transfer.threshold_bytes", uint64_t{kRing} / 2).ok());
    EXPECT_TRUE(config.set("wait.sleep_ms", 10'000).ok());
  };
  return shape;
}

// Takes as many rows, which must be of `value`, in as many batches as they come in.
void take_rows(Shuffle& shuffle, uint32_t count, uint8_t value) {
  for (uint32_t taken = 0; taken < count;) {
    Batch batch;
    ASSERT_EQ(shuffle.receiver()->receive(batch), Outcome::done);
    for (const auto row : batch.each_row()) ASSERT_EQ(row[0], std::byte{value});
    taken += batch.row_count();
    ASSERT_LE(taken, count);
  }
}

void take_row(Shuffle& shuffle, uint8_t value) { take_rows(shuffle, 1, value); }

// The receiver wants rows of one shuffle; those of the other lie in the ring, half of it, too few
// to be spilled. What it has released is less than a quarter: not told yet, and the sender needs
// just that if its next frame, of a quarter, does not fit before the end of the ring.
void released_before_unwanted_frames(uint32_t lines_before) {
  SCOPED_TRACE("the frames begin at line " + std::to_string(lines_before));
  SimCluster cluster(1 + lines_before, one_ring());
  sim::World& world = cluster.world();
  ASSERT_TRUE(cluster.open_sessions().ok()) << world.report();
  const QueryId query = cluster.session(0).begin_query();
  uint32_t lines_taken = 0;
  spawn_part(cluster, 0, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    for (uint32_t line = 0; line < lines_before; ++line) {
      ASSERT_EQ(wanted.sender()->send(0, row_of_frame(wire::kFrameAlignment, 1)), Outcome::done);
      (void)wanted.sender()->flush();
      world.wait_until([&] { return lines_taken > line; }, base::kForever, "the line to be taken");
    }
    // The shuffles close each other's frames, and the threshold posts all three at once.
    ASSERT_EQ(wanted.sender()->send(0, row_of_frame(kRing / 4 - 2 * wire::kFrameAlignment, 2)),
              Outcome::done);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(unwanted.sender()->send(0, row_of_frame(kRing / 4, 3)), Outcome::done);
    }
    ASSERT_EQ(wanted.sender()->send(0, row_of_frame(kRing / 4, 4)), Outcome::done);
    ASSERT_EQ(wanted.sender()->finish(), Outcome::done);
    ASSERT_EQ(unwanted.sender()->finish(), Outcome::done);
  });
  spawn_part(cluster, 1, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    while (lines_taken < lines_before) {
      take_row(wanted, 1);
      ++lines_taken;
    }
    take_row(wanted, 2);
    take_row(wanted, 4);
    Batch batch;
    ASSERT_EQ(wanted.receiver()->receive(batch), Outcome::end_of_stream);
    take_rows(unwanted, 2, 3);
    ASSERT_EQ(unwanted.receiver()->receive(batch), Outcome::end_of_stream);
  });
  const Status ran = cluster.run();
  ASSERT_TRUE(ran.ok()) << world.report();
  EXPECT_EQ(cluster.session(1).worker(0).metrics().frames_spilled, 0u)
      << "spilling tells read positions as well: the situation was not reached";
}

TEST(WorkerThatWaits, has_told_what_it_released_wherever_the_ring_ends) {
  for (uint32_t lines = 0; lines < kRing / wire::kFrameAlignment; ++lines) {
    released_before_unwanted_frames(lines);
    if (HasFailure()) break;
  }
}

// The first yields leave the open frame open: whoever runs meanwhile mostly brings what the worker
// waits for. After that it may be just these rows that others wait for.
TEST(WorkerThatWaits, closes_its_open_frames_after_two_yields) {
  SimCluster cluster(1, one_ring());
  sim::World& world = cluster.world();
  ASSERT_TRUE(cluster.open_sessions().ok()) << world.report();
  const QueryId query = cluster.session(0).begin_query();
  std::vector<uint64_t> sent;  // at each look: before the first yield, after it, …
  bool received = false;
  cluster.spawn(0, 0, [&] {
    Worker& worker = cluster.session(0).worker(0);
    Result<Shuffle> shuffle = worker.open_shuffle({query, 0, 0, {0}, {1}});
    ASSERT_TRUE(shuffle.ok());
    ASSERT_EQ(shuffle->sender()->send(0, row_of_frame(wire::kFrameAlignment, 1)), Outcome::done);
    ASSERT_EQ(worker.wait_until([&] {
      sent.push_back(worker.metrics().rows_sent);
      return received;
    }),
              Outcome::done);
    ASSERT_EQ(shuffle->sender()->finish(), Outcome::done);
    shuffle->close();
    ASSERT_EQ(worker.end_query(query), Outcome::done);
  });
  cluster.spawn(1, 0, [&] {
    Worker& worker = cluster.session(1).worker(0);
    Result<Shuffle> shuffle = worker.open_shuffle({query, 0, 0, {0}, {1}});
    ASSERT_TRUE(shuffle.ok());
    take_row(*shuffle, 1);
    received = true;
    cluster.session(0).worker(0).wake();
    Batch batch;
    ASSERT_EQ(shuffle->receiver()->receive(batch), Outcome::end_of_stream);
    shuffle->close();
    ASSERT_EQ(worker.end_query(query), Outcome::done);
  });
  const Status ran = cluster.run();
  ASSERT_TRUE(ran.ok()) << world.report();
  ASSERT_GE(sent.size(), 4u);
  EXPECT_EQ(std::vector<uint64_t>(sent.begin(), sent.begin() + 4),
            (std::vector<uint64_t>{0, 0, 0, 1}));
}

// What was not there after twenty yields, but long after, will not be there after twenty yields the next time.
TEST(WorkerThatWaits, yields_twice_after_a_long_wait) {
  SimCluster cluster(1, one_ring());
  ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
  cluster.spawn(0, 0, [&] {
    Worker& worker = cluster.session(0).worker(0);
    const auto looks_of_wait = [&](base::Nanoseconds lasting) {
      uint64_t looks = 0;
      EXPECT_EQ(worker.wait_until([&] { return ++looks == 0; },
                                  Wait::at_most(std::chrono::nanoseconds(lasting))),
                Outcome::deadline);
      return looks;
    };
    const uint64_t looks = looks_of_wait(100'000);
    EXPECT_EQ(looks_of_wait(1'000'000), looks);
    EXPECT_EQ(looks_of_wait(100'000), looks - 18);
    EXPECT_EQ(looks_of_wait(100'000), looks);
  });
  ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
}

// By a clock that is set by hand: a yield takes what it takes, and there may be a million of them.
TEST(Waiting, a_time_limit_ends_a_wait_that_still_yields) {
  constexpr uint64_t kYields = 1'000'000;
  ClusterShape shape = one_ring();
  const auto configure_ring = shape.configure;
  shape.configure = [configure_ring](Config& config, uint32_t node) {
    configure_ring(config, node);
    EXPECT_TRUE(config.set("wait.yields", kYields).ok());
  };
  SimCluster cluster(1, shape);
  ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
  uint64_t looks = 0;
  cluster.spawn(0, 0, [&] {
    EXPECT_EQ(cluster.session(0).worker(0).wait_until([&] { return ++looks > kYields; },
                                                      Wait::at_most(std::chrono::milliseconds(0))),
              Outcome::deadline);
  });
  ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
  EXPECT_LT(looks, 10u);
}

// An engine with an event loop of its own: between looks at one shuffle it waits for conditions that soon
// hold, and have nothing to do with rows. Frames of the other shuffle fill the ring; they have to be
// spilled all the same.
TEST(Waiting, conditions_that_keep_coming_true_do_not_keep_rows_from_being_spilled) {
  SimCluster cluster(1, one_ring());
  sim::World& world = cluster.world();
  ASSERT_TRUE(cluster.open_sessions().ok()) << world.report();
  const QueryId query = cluster.session(0).begin_query();
  spawn_part(cluster, 0, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    for (int i = 0; i < 8; ++i)
      ASSERT_EQ(unwanted.sender()->send(0, row_of_frame(kRing / 4, 3)), Outcome::done);
    ASSERT_EQ(wanted.sender()->send(0, row_of_frame(kRing / 4, 1)), Outcome::done);
    ASSERT_EQ(wanted.sender()->finish(), Outcome::done);
    ASSERT_EQ(unwanted.sender()->finish(), Outcome::done);
  });
  spawn_part(cluster, 1, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    Batch batch;
    while (wanted.receiver()->receive(batch, Wait::none()) == Outcome::would_wait) {
      bool looked = false;
      ASSERT_EQ(cluster.session(1).worker(0).wait_until(
                    [&looked] { return std::exchange(looked, true); }),
                Outcome::done);
    }
    ASSERT_EQ(batch.row_count(), 1u);
    batch.release();
    uint32_t rows = 0;  // what was spilled comes in frames of more than one
    for (; rows < 8 && unwanted.receiver()->receive(batch) == Outcome::done;
         rows += batch.row_count()) {
    }
    ASSERT_EQ(rows, 8u);
    batch.release();
    ASSERT_EQ(wanted.receiver()->receive(batch), Outcome::end_of_stream);
    ASSERT_EQ(unwanted.receiver()->receive(batch), Outcome::end_of_stream);
  });
  ASSERT_TRUE(cluster.run().ok()) << world.report();
}

// The look of the worker is that of whatever waits for the condition, however many calls that makes.
TEST(Waiting, a_condition_looks_at_the_network_once_for_all_its_calls) {
  SimCluster cluster(1, one_ring());
  ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
  const QueryId query = cluster.session(0).begin_query();
  bool ends = false;
  spawn_part(cluster, 0, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    while (!ends) cluster.sleep(1'000'000);
    ASSERT_EQ(wanted.sender()->finish(), Outcome::done);
    ASSERT_EQ(unwanted.sender()->finish(), Outcome::done);
  });
  spawn_part(cluster, 1, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    Worker& worker = cluster.session(1).worker(0);
    Batch batch;
    const auto look = [&] {
      bool any = false;
      for (Shuffle* each : {&unwanted, &wanted, &unwanted})
        any |= each->receiver()->receive(batch, Wait::none()) != Outcome::would_wait;
      EXPECT_EQ(worker.wait_until([] { return false; }, Wait::none()), Outcome::would_wait);
      return any;
    };
    const auto looks_of = [&](const auto& call) {
      const uint64_t before = cluster.network_looks();
      EXPECT_EQ(call(), Outcome::would_wait);
      return cluster.network_looks() - before;
    };
    EXPECT_EQ(looks_of([&] { return worker.wait_until(look, Wait::none()); }), 1u);
    ASSERT_TRUE(worker.ready_descriptor().ok());
    EXPECT_EQ(looks_of([&] { return worker.arm(look); }), 2u) << "before it is armed, and after";
    EXPECT_EQ(looks_of([&] { return wanted.receiver()->receive(batch, Wait::none()); }), 1u);
    ends = true;
    for (Shuffle* each : {&unwanted, &wanted})
      ASSERT_EQ(each->receiver()->receive(batch), Outcome::end_of_stream);
  });
  ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
}

// What arrives while the condition looks is found by the same call.
TEST(Waiting, a_condition_that_does_not_hold_is_asked_again_when_rows_have_come) {
  SimCluster cluster(1, one_ring());
  ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
  const QueryId query = cluster.session(0).begin_query();
  uint32_t looks = 0;
  spawn_part(cluster, 0, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    while (looks == 0) cluster.sleep(1'000);
    ASSERT_EQ(wanted.sender()->send(0, row_of_frame(kRing / 4, 1)), Outcome::done);
    ASSERT_EQ(wanted.sender()->finish(), Outcome::done);
    ASSERT_EQ(unwanted.sender()->finish(), Outcome::done);
  });
  spawn_part(cluster, 1, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    Batch batch;
    const auto look = [&] {
      const Outcome outcome = wanted.receiver()->receive(batch, Wait::none());
      EXPECT_EQ(outcome, looks == 0 ? Outcome::would_wait : Outcome::done);
      if (looks++ == 0) cluster.sleep(1'000'000'000);  // the row comes
      return outcome == Outcome::done;
    };
    ASSERT_EQ(cluster.session(1).worker(0).wait_until(look, Wait::none()), Outcome::done);
    EXPECT_EQ(looks, 2u);
    batch.release();
    for (Shuffle* each : {&unwanted, &wanted})
      ASSERT_EQ(each->receiver()->receive(batch), Outcome::end_of_stream);
  });
  ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
}

// An engine's turn has always something of its own to do, so what waits for it never would wait. Its calls would: the
// rows that it does not take have to be spilled all the same.
TEST(Waiting, turns_with_work_of_their_own_do_not_keep_rows_from_being_spilled) {
  SimCluster cluster(1, one_ring());
  ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
  const QueryId query = cluster.session(0).begin_query();
  spawn_part(cluster, 0, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    for (int i = 0; i < 8; ++i)
      ASSERT_EQ(unwanted.sender()->send(0, row_of_frame(kRing / 4, 3)), Outcome::done);
    ASSERT_EQ(wanted.sender()->send(0, row_of_frame(kRing / 4, 1)), Outcome::done);
    ASSERT_EQ(wanted.sender()->finish(), Outcome::done);
    ASSERT_EQ(unwanted.sender()->finish(), Outcome::done);
  });
  spawn_part(cluster, 1, query, 0, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
    Worker& worker = cluster.session(1).worker(0);
    ASSERT_TRUE(worker.ready_descriptor().ok());
    Batch batch;
    bool has_row = false;
    for (int turns = 0; !has_row; ++turns) {
      ASSERT_LT(turns, 1'000'000) << "the rows before it are not spilled";
      const auto turn = [&] {
        has_row = wanted.receiver()->receive(batch, Wait::none()) == Outcome::done;
        return true;
      };
      ASSERT_EQ(worker.arm(turn), Outcome::done);
    }
    batch.release();
    uint32_t rows = 0;
    for (; rows < 8 && unwanted.receiver()->receive(batch) == Outcome::done;
         rows += batch.row_count()) {
    }
    ASSERT_EQ(rows, 8u);
    batch.release();
    for (Shuffle* each : {&unwanted, &wanted})
      ASSERT_EQ(each->receiver()->receive(batch), Outcome::end_of_stream);
  });
  ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
}

}  // namespace
}  // namespace faro::test
