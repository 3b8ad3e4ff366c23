// The memory of nodes: all that they allocate is what faro plan says and the overflow budget, however
// small rows and frames are; and each allocation can fail.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "command/plan.h"
#include "faro/session.h"
#include "faro/shuffle.h"
#include "lab/simulation/sim_spill_file.h"
#include "node/node_core.h"
#include "node/session_access.h"
#include "sim/cluster.h"
#include "sim/node_memory.h"
#include "sim/two_shuffles.h"
#include "support/query_end.h"

namespace faro::test {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kOverflowMemory = 256 << 10;
constexpr uint64_t kOverflowFile = 128 << 10;

/// Two nodes of a worker each, whose allocations are counted.
class CountedCluster {
 public:
  using Settings = std::vector<std::pair<const char*, uint64_t>>;
  /// `more`: settings of both.
  explicit CountedCluster(Settings more = {}, const char* lane_ends = "workers")
      : cluster(1, shape(std::move(more), lane_ends)), memory(cluster.world()) {}

  std::vector<simulation::SimDisk> disks = std::vector<simulation::SimDisk>(2);
  SimCluster cluster;
  NodeMemory memory;

  /// What faro plan says of a node: at open, and at most.
  command::NodePlan plan(uint32_t node) {
    command::PlanInput input;
    input.settings = cluster.settings(node);
    return command::make_plan(input, command::state_sizes_of_this_build()).nodes[node];
  }
  /// After open; what follows is compared with what overflow counts.
  void begin() { opened_ = {memory.bytes(0), memory.bytes(1)}; }
  /// At most 10 % more than planned; and than what was counted, except the nodes of frames in rings.
  void expect_as_planned(uint32_t node) {
    const command::NodePlan planned = plan(node);
    const uint64_t most = planned.most_bytes() - planned.operator_bytes;  // there are none
    const uint64_t peak = memory.peak_bytes(node);
    const uint64_t counted =
        SessionAccess::core(cluster.session(node)).overflow().memory_peak_bytes();
    fmt::print("node {}: {} bytes at open, {} at most, planned {}; counted in overflow {}\n", node,
               opened_[node], peak, most, counted);
    EXPECT_LE(peak, most + most / 10) << "node " << node;
    EXPECT_LE(peak - opened_[node],
              counted + counted / 10 + planned.frame_bytes + planned.shuffle_bytes + 4096)
        << "node " << node;
  }
  void expect_empty_disks() const {
    for (const simulation::SimDisk& disk : disks) {
      EXPECT_EQ(disk.used_bytes, 0u);
      EXPECT_EQ(disk.misuse, "");
    }
  }

 private:
  std::vector<uint64_t> opened_ = {0, 0};

  ClusterShape shape(Settings more, const char* lane_ends) {
    ClusterShape made;
    made.knobs.stall_limit = 20'000'000'000;
    made.configure = [more = std::move(more), lane_ends](Config& config, uint32_t) {
      EXPECT_TRUE(config.set("lane.ends", lane_ends).ok());
      for (const auto& [key, value] : std::initializer_list<std::pair<const char*, uint64_t>>{
               {"ring.bytes", 4096},
               {"ring.per_lane", 1},
               {"transfer.threshold_bytes", 0},
               {"shuffle.limit", 4},
               {"drain.delay_us", 0},
               {"connect.timeout_ms", 2000},
               {"overflow.memory_bytes", kOverflowMemory},
               {"overflow.file_bytes", kOverflowFile}})
        EXPECT_TRUE(config.set(key, value).ok()) << key;
      for (const auto& [key, value] : more) EXPECT_TRUE(config.set(key, value).ok()) << key;
      EXPECT_TRUE(config.set("counters.folder", "").ok());
    };
    made.make_spill_file = [this](uint32_t node) {
      const sim::World::Outside outside(cluster.world());
      disks[node].limit_bytes = kOverflowFile;
      return make_outside_file(cluster.world(),
                               std::make_unique<simulation::SimSpillFile>(disks[node]));
    };
    return made;
  }
};

ShuffleSpec from_to(const QueryId& query, uint32_t stage, uint32_t sender, uint32_t receiver) {
  return {query, stage, 1, {sender}, {receiver}};
}

constexpr std::byte kRow{7};

/// Sends rows of a byte with a flush each until that fails or `rows` are sent.
uint64_t send_one_by_one(Shuffle& shuffle, uint64_t rows) {
  uint64_t sent = 0;
  while (sent < rows && shuffle.sender()->send(0, {&kRow, 1}) == Outcome::done) {
    (void)shuffle.sender()->flush();
    ++sent;
  }
  return sent;
}

constexpr uint64_t kNoEnd = UINT64_MAX;

// Node 1 wants other rows than come. They fill its overflow.
TEST(NodeMemory, rows_spilled_take_what_is_planned_when_each_was_flushed) {
  CountedCluster counted;
  SimCluster& cluster = counted.cluster;
  ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
  counted.begin();
  const QueryId query = cluster.session(0).begin_query();
  uint64_t sent = 0;
  spawn_part(cluster, 0, query, 1, Outcome::failed, [&](Shuffle& unwanted, Shuffle&) {
    sent = send_one_by_one(unwanted, kNoEnd);
    EXPECT_EQ(unwanted.status().code(), Code::overflow_exhausted) << unwanted.status().to_string();
  });
  spawn_part(cluster, 1, query, 1, Outcome::failed, [&](Shuffle&, Shuffle& wanted) {
    Batch batch;
    EXPECT_EQ(wanted.receiver()->receive(batch), Outcome::failed);
    EXPECT_EQ(wanted.status().code(), Code::overflow_exhausted) << wanted.status().to_string();
  });
  ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
  // Memory and file are really used: few bytes of them for anything but rows.
  EXPECT_GT(sent, (kOverflowMemory + kOverflowFile) * 8 / 10);
  counted.expect_as_planned(0);
  counted.expect_as_planned(1);
}

// Node 0 holds a batch while node 1 takes nothing: its rows fill its own overflow. Two shuffles by turns
// close each other's frames.
TEST(NodeMemory, rows_queued_for_a_ring_take_what_is_planned_when_shuffles_take_turns) {
  CountedCluster counted;
  SimCluster& cluster = counted.cluster;
  ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
  counted.begin();
  const QueryId query = cluster.session(0).begin_query();
  bool over = false;
  cluster.spawn(0, 0, [&] {
    Worker& worker = cluster.session(0).worker(0);
    Shuffle first = std::move(*worker.open_shuffle(from_to(query, 0, 0, 1)));
    Shuffle second = std::move(*worker.open_shuffle(from_to(query, 1, 0, 1)));
    Shuffle back = std::move(*worker.open_shuffle(from_to(query, 2, 1, 0)));
    Batch held;
    EXPECT_EQ(back.receiver()->receive(held), Outcome::done);
    while (send_one_by_one(first, 1) == 1 && send_one_by_one(second, 1) == 1) {
    }
    held.release();
    for (Shuffle* shuffle : {&first, &second, &back}) shuffle->close();
    Status cause;
    EXPECT_EQ(end_query(worker, query, cause), Outcome::failed);
    EXPECT_EQ(cause.code(), Code::overflow_exhausted) << cause.to_string();
    over = true;
  });
  cluster.spawn(1, 0, [&] {
    Worker& worker = cluster.session(1).worker(0);
    Shuffle first = std::move(*worker.open_shuffle(from_to(query, 0, 0, 1)));
    Shuffle second = std::move(*worker.open_shuffle(from_to(query, 1, 0, 1)));
    Shuffle back = std::move(*worker.open_shuffle(from_to(query, 2, 1, 0)));
    EXPECT_EQ(send_one_by_one(back, 1), 1u);
    cluster.world().wait_until([&] { return over; }, base::kForever, "the others");
    for (Shuffle* shuffle : {&first, &second, &back}) shuffle->close();
    EXPECT_EQ(worker.end_query(query), Outcome::failed);
  });
  ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
  counted.expect_as_planned(0);
  counted.expect_as_planned(1);
}

TEST(NodeMemory, memory_is_given_back_when_a_query_has_ended) {
  CountedCluster counted;
  SimCluster& cluster = counted.cluster;
  ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
  std::vector<uint64_t> before = {counted.memory.bytes(0), counted.memory.bytes(1)};
  for (int round = 0; round < 2; ++round) {
    const QueryId query = cluster.session(0).begin_query();
    uint64_t received = 0;
    constexpr uint64_t kRows = 30'000;
    bool spilled = false;
    spawn_part(cluster, 0, query, 1, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
      EXPECT_EQ(send_one_by_one(unwanted, kRows), kRows);
      EXPECT_EQ(unwanted.sender()->finish(), Outcome::done);
      EXPECT_EQ(wanted.sender()->finish(), Outcome::done);
    });
    spawn_part(cluster, 1, query, 1, Outcome::done, [&](Shuffle& unwanted, Shuffle& wanted) {
      Batch batch;
      EXPECT_EQ(wanted.receiver()->receive(batch), Outcome::end_of_stream);
      spilled = cluster.session(1).metrics().overflow_memory_bytes >= kRows * 9 / 10;
      while (unwanted.receiver()->receive(batch) == Outcome::done) {
        for (const std::byte b : batch.bytes()) received += b == kRow ? 1 : 0;
      }
    });
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    EXPECT_EQ(received, kRows);
    EXPECT_TRUE(spilled) << "nothing was spilled";
    // The first query also leaves what is kept for the next one: nodes of frames, room in tables.
    for (uint32_t node = 0; node < 2 && round == 0; ++node) {
      EXPECT_LT(counted.memory.bytes(node), before[node] + counted.plan(node).frame_bytes + 8192)
          << "node " << node;
      before[node] = counted.memory.bytes(node);
    }
    for (uint32_t node = 0; node < 2 && round == 1; ++node)
      EXPECT_LE(counted.memory.bytes(node), before[node] + 1024) << "node " << node;
  }
}

// --- every allocation of the data path fails in turn

/// A query of two stages between the two nodes: rows that are packed in overflow and rows larger than a
/// frame, held, detached, claimed. Each worker tells how it ended.
class FailingQuery {
 public:
  /// `delivery`: of the first stage.
  explicit FailingQuery(CountedCluster& counted, Delivery delivery = Delivery::worker)
      : cluster_(counted.cluster), delivery_(delivery) {
    id_ = cluster_.session(0).begin_query();
    for (uint32_t node = 0; node < 2; ++node) cluster_.spawn(node, 0, [this, node] { run(node); });
  }

  struct Ending {
    Outcome outcome = Outcome::would_wait;
    Status cause;
    bool has_all_rows = false;
  };
  const Ending& ending(uint32_t node) const { return endings_[node]; }

 private:
  static constexpr uint32_t kSmallRows = 200;  // from node 0 to node 1, a flush behind each
  static constexpr uint32_t kRows = 12;        // from each to each
  static constexpr size_t kLargest = 5000;     // more than a ring

  static size_t length(uint32_t row) { return row % 4 == 3 ? kLargest - row : 1 + row; }
  static std::byte value(uint32_t sender, uint32_t row) {
    return static_cast<std::byte>(16 * sender + row % 16 + 1);
  }

  void run(uint32_t node) {
    Worker& worker = cluster_.session(node).worker(0);
    Status failure;
    bool has_all = false;
    {
      Shuffle wide;
      Shuffle small;
      has_all = work(node, worker, wide, small, failure);
    }
    Ending& ending = endings_[node];
    ending.outcome = has_all ? end_query(worker, id_, ending.cause)
                             : end_query(worker, id_, failure, ending.cause);
    ending.has_all_rows = has_all;
  }

  // Whether this worker sent, and has, all that it should.
  bool work(uint32_t node, Worker& worker, Shuffle& wide, Shuffle& small, Status& failure) {
    const auto open = [&](Shuffle& shuffle, const ShuffleSpec& spec) {
      Result<Shuffle> opened = worker.open_shuffle(spec);
      failure = opened.status();
      if (opened.ok()) shuffle = std::move(*opened);
      return opened.ok();
    };
    const auto is_done = [&](Shuffle& shuffle, Outcome outcome) {
      if (outcome != Outcome::done && outcome != Outcome::end_of_stream) failure = shuffle.status();
      return outcome == Outcome::done;
    };
    ShuffleSpec wide_spec;
    ShuffleSpec small_spec;
    {
      const sim::World::Outside outside(cluster_.world());  // the test's vectors
      wide_spec = {id_, 0, 0, {0, 1}, {0, 1}};
      wide_spec.delivery = delivery_;
      small_spec = {id_, 1, 1, {0}, {1}};
    }
    if (!open(wide, wide_spec) || !open(small, small_spec)) return false;
    if (node == 0) {
      for (uint32_t row = 0; row < kSmallRows; ++row) {
        const std::byte b = value(0, row);
        if (!is_done(small, small.sender()->send(0, {&b, 1}))) return false;
        (void)small.sender()->flush();
      }
      if (!is_done(small, small.sender()->finish())) return false;
    }

    Batch held;
    uint32_t expected[2] = {0, 0};
    for (uint32_t row = 0; row < kRows; ++row) {
      const uint32_t receivers = delivery_ == Delivery::replicate ? 1 : 2;
      for (uint32_t receiver = 0; receiver < receivers; ++receiver) {
        if (!send_wide(wide, held, node, receiver, row, failure)) return false;
      }
      Batch batch;
      const Outcome outcome = wide.receiver()->receive(batch, Wait::none());
      if (outcome == Outcome::failed) return is_done(wide, outcome);
      if (outcome == Outcome::done && !check(batch, expected)) return false;
      if (row % 3 == 0) {
        held = std::move(batch);
      } else if (row % 3 == 1 && !batch.empty() && batch.detach().ok()) {
        held = std::move(batch);
      }
    }
    held.release();
    if (!is_done(wide, wide.sender()->finish())) return false;
    Batch batch;
    Outcome outcome;
    while ((outcome = wide.receiver()->receive(batch)) == Outcome::done) {
      if (!check(batch, expected)) return false;
    }
    batch.release();
    if (outcome != Outcome::end_of_stream) return is_done(wide, outcome);
    if (node == 0) return expected[0] == kRows && expected[1] == kRows;
    uint32_t small_rows = 0;
    while ((outcome = small.receiver()->receive(batch)) == Outcome::done) {
      for (const std::byte b : batch.bytes()) {
        if (b != value(0, small_rows++)) return broken("a small row is another");
      }
    }
    batch.release();
    if (outcome != Outcome::end_of_stream) return is_done(small, outcome);
    return expected[0] == kRows && expected[1] == kRows && small_rows == kSmallRows;
  }

  bool send_wide(Shuffle& wide, Batch& held, uint32_t node, uint32_t receiver, uint32_t row,
                 Status& failure) {
    std::byte bytes[kLargest];
    const size_t size = length(row);
    std::memset(bytes, static_cast<int>(value(node, row)), size);
    for (;;) {
      Outcome outcome;
      if (row % 2 == 0) {
        outcome = wide.sender()->send(receiver, {bytes, size});
      } else {
        RowClaim claim;
        outcome = wide.sender()->claim(receiver, size, claim);
        if (outcome == Outcome::done) {
          std::memcpy(claim.data().data(), bytes, size);
          failure = claim.commit(size);
          if (!failure.ok()) return false;
        }
      }
      if (outcome == Outcome::done) return true;
      if (outcome == Outcome::holding) {
        held.release();
        continue;
      }
      failure = wide.status();
      return false;
    }
  }

  bool check(const Batch& batch, uint32_t (&expected)[2]) {
    for (const std::span<const std::byte> row : batch.each_row()) {
      const uint32_t number = expected[batch.sender()]++;
      if (row.size() != length(number)) return broken("a row has another length");
      for (const std::byte b : row) {
        if (b != value(batch.sender(), number)) return broken("a row has other bytes");
      }
    }
    return true;
  }
  bool broken(const char* what) {
    cluster_.world().violation(what);
    return false;
  }

  SimCluster& cluster_;
  const Delivery delivery_;
  QueryId id_;
  Ending endings_[2];
};

// A node that has no memory says so; the other one may have waited in vain.
void expect_no_memory_in_one(SimCluster& cluster) {
  bool says_why = false;
  for (uint32_t node = 0; node < 2; ++node) {
    const Status& opened = cluster.opened(node);
    says_why |= opened.code() == Code::resource_limit;
    EXPECT_TRUE(opened.ok() || opened.code() == Code::resource_limit ||
                opened.code() == Code::connect_failed)
        << "node " << node << ": " << opened.to_string();
  }
  EXPECT_TRUE(says_why) << cluster.opened(0).to_string() << " / " << cluster.opened(1).to_string();
}

// Whether it has failed. A node that loses the issuer may not hear any more that it ended well.
bool expect_ended_alike(const FailingQuery& query) {
  bool failed = false;
  for (uint32_t node = 0; node < 2; ++node) {
    const FailingQuery::Ending& ending = query.ending(node);
    if (ending.outcome == Outcome::done) {
      EXPECT_TRUE(ending.has_all_rows) << "node " << node;
      continue;
    }
    failed = true;
    EXPECT_EQ(ending.outcome, Outcome::failed);
    EXPECT_TRUE(ending.cause.code() == Code::overflow_exhausted ||
                ending.cause.code() == Code::peer_lost)
        << "node " << node << ": " << ending.cause.to_string();
  }
  if (query.ending(0).outcome != query.ending(1).outcome) {
    EXPECT_EQ(query.ending(0).outcome, Outcome::done);
    EXPECT_EQ(query.ending(1).cause.code(), Code::peer_lost) << query.ending(1).cause.to_string();
  }
  return failed;
}

/// Where lanes end, and the delivery of a stage.
struct Ways {
  const char* lane_ends;
  Delivery delivery;
};

class FailingAllocation : public testing::TestWithParam<Ways> {};

TEST_P(FailingAllocation, ends_the_query_alike_everywhere_and_nothing_is_lost) {
  uint32_t failed_queries = 0;
  uint64_t number = 1;
  for (;; ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    CountedCluster counted({}, GetParam().lane_ends);
    SimCluster& cluster = counted.cluster;
    ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
    FailingQuery query(counted, GetParam().delivery);
    counted.memory.fail_at(number);
    const Status ran = cluster.run();
    const bool failed = counted.memory.has_failed();
    counted.memory.fail_at(0);
    ASSERT_TRUE(ran.ok()) << cluster.world().report();
    for (uint32_t node = 0; node < 2; ++node) {
      const FailingQuery::Ending& ending = query.ending(node);
      EXPECT_EQ(ending.outcome, query.ending(0).outcome) << ending.cause.to_string();
      if (ending.outcome == Outcome::done) {
        EXPECT_TRUE(ending.has_all_rows) << "node " << node;
      } else {
        EXPECT_EQ(ending.cause.code(), Code::overflow_exhausted) << ending.cause.to_string();
      }
      node::NodeCore& core = SessionAccess::core(cluster.session(node));
      EXPECT_EQ(core.overflow().memory_bytes(), 0u);
    }
    counted.expect_empty_disks();
    if (query.ending(0).outcome != Outcome::done) ++failed_queries;
    if (testing::Test::HasFailure() || !failed) break;
  }
  fmt::print("{} allocations, {} of them fail the query\n", number - 1, failed_queries);
  EXPECT_GT(number, 50u);
  EXPECT_GT(failed_queries, 10u);
}

INSTANTIATE_TEST_SUITE_P(
    Each, FailingAllocation,
    testing::Values(Ways{"workers", Delivery::worker}, Ways{"node", Delivery::worker},
                    Ways{"both", Delivery::node}, Ways{"both", Delivery::replicate}),
    [](const auto& of) {
      return fmt::format("{}_{}", of.param.lane_ends, to_string(of.param.delivery));
    });

// The session opens, runs the query and closes. What a network thread has no memory for costs its link.
TEST(NodeMemory,
     whichever_allocation_fails_from_open_to_close_the_right_error_is_told_and_nothing_hangs) {
  uint32_t failed_opens = 0, failed_queries = 0;
  uint64_t number = 1;
  for (;; ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    CountedCluster counted;
    SimCluster& cluster = counted.cluster;
    counted.memory.fail_anywhere_at(number);
    const bool opened = cluster.open_sessions().ok();
    ASSERT_FALSE(cluster.world().failed()) << cluster.world().report();
    if (!opened) {
      EXPECT_TRUE(counted.memory.has_failed())
          << cluster.opened(0).to_string() << " / " << cluster.opened(1).to_string();
      expect_no_memory_in_one(cluster);
      ++failed_opens;
    } else {
      FailingQuery query(counted);
      ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
      failed_queries += expect_ended_alike(query);
    }
    ASSERT_TRUE(cluster.close().ok()) << cluster.world().report();
    const bool failed = counted.memory.has_failed();
    counted.memory.fail_at(0);
    counted.expect_empty_disks();
    if (testing::Test::HasFailure() || !failed) break;
  }
  fmt::print("{} allocations, {} of those tried fail open, {} the query\n", number - 1,
             failed_opens, failed_queries);
  EXPECT_GT(failed_opens, 50u);
  EXPECT_GT(failed_queries, 20u);
}

// --- links that are let go

/// A query that both nodes declare, with a row from each to each. Each worker tells how it ended; one whose node may not declare
/// it, why.
class DeclaredQuery {
 public:
  explicit DeclaredQuery(CountedCluster& counted) : cluster_(counted.cluster) {
    id_ = cluster_.session(0).begin_query();
    for (uint32_t node = 0; node < 2; ++node) {
      const Status declared = cluster_.session(node).declare_query(id_, {0, 1});
      if (declared.ok()) {
        cluster_.spawn(node, 0, [this, node] { run(node); });
      } else {
        endings_[node] = {Outcome::failed, declared};
      }
    }
  }

  struct Ending {
    Outcome outcome = Outcome::would_wait;
    Status cause;
    uint64_t rows = 0;
  };
  const Ending& ending(uint32_t node) const { return endings_[node]; }

 private:
  void run(uint32_t node) {
    Worker& worker = cluster_.session(node).worker(0);
    Ending& ending = endings_[node];
    if (Result<Shuffle> shuffle = worker.open_shuffle({id_, 0, 1, {}, {}}); shuffle.ok()) {
      for (uint32_t receiver = 0; receiver < 2; ++receiver)
        (void)shuffle->sender()->send(receiver, {&kRow, 1});
      (void)shuffle->sender()->finish();
      Batch batch;
      while (shuffle->receiver()->receive(batch) == Outcome::done) ending.rows += batch.row_count();
    }
    ending.outcome = end_query(worker, id_, ending.cause);
  }

  SimCluster& cluster_;
  QueryId id_;
  Ending endings_[2];
};

// What a network thread has no memory for costs its link, or has the link asked for again. No link stays held: the next query
// is done, or is told that the nodes have lost each other.
TEST(NodeMemory, whichever_allocation_fails_as_a_link_is_let_go_the_next_query_ends_alike) {
  uint32_t losses = 0;
  uint64_t number = 1;
  for (bool failed = true; failed && !testing::Test::HasFailure(); ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    CountedCluster counted({{"cluster.node_limit", 2},
                            {"cluster.workers", 1},
                            {"link.idle_ms", 1},
                            {"liveness.timeout_ms", 2000}});
    SimCluster& cluster = counted.cluster;
    ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
    const auto is_linked = [&](uint32_t node) {
      return SessionAccess::core(cluster.session(node)).membership().connected(1 - node);
    };
    const DeclaredQuery first(counted);
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    ASSERT_TRUE(is_linked(0) && is_linked(1));
    counted.memory.fail_anywhere_at(number);
    cluster.world().wait_until([&] { return !is_linked(0) && !is_linked(1); }, base::kForever,
                               "the end of the link");
    failed = counted.memory.has_failed();
    counted.memory.fail_at(0);
    const DeclaredQuery second(counted);
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    for (uint32_t node = 0; node < 2; ++node) {
      EXPECT_EQ(first.ending(node).outcome, Outcome::done) << first.ending(node).cause.to_string();
      const DeclaredQuery::Ending& ending = second.ending(node);
      EXPECT_EQ(ending.outcome, second.ending(0).outcome) << ending.cause.to_string();
      if (ending.outcome == Outcome::done) {
        EXPECT_EQ(ending.rows, 2u);
      } else {
        EXPECT_EQ(ending.cause.code(), Code::peer_lost) << ending.cause.to_string();
      }
    }
    losses += second.ending(0).outcome != Outcome::done;
  }
  fmt::print("{} allocations, {} of them cost the link\n", number - 1, losses);
  EXPECT_GT(number, 10u);
}

// --- a sender that says more rows than it sent

/// Ends the stream from worker 0 to worker 1, in the slot of its first shuffle, with a wrong number of rows.
void finish_wrongly(node::NodeCore& core) {
  const wire::FinishPayload finish{7};
  constexpr uint32_t kBytes = sizeof(wire::FrameHeader) + sizeof finish;
  const wire::FrameHeader header{kBytes, wire::FrameKind::finish, 0, 0, 0, 0};
  transport::Outgoing& ring =
      core.membership().link(1)->outgoing(core.membership().outgoing_layout(1).ring(0, 0, 0));
  const transport::Claim claim = ring.claim(kBytes, kBytes);
  ASSERT_GE(claim.bytes, kBytes);
  std::memcpy(claim.data, &header, sizeof header);
  std::memcpy(claim.data + sizeof header, &finish, sizeof finish);
  ring.commit(kBytes);
  ring.post();
}

TEST(NodeMemory, whichever_allocation_fails_a_wrong_number_of_rows_fails_the_query_and_no_link) {
  uint64_t number = 1;
  for (bool failed = true; failed && !HasFailure(); ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    CountedCluster counted;
    SimCluster& cluster = counted.cluster;
    ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
    const QueryId id = cluster.session(0).begin_query();
    for (uint32_t node = 0; node < 2; ++node) {
      cluster.spawn(node, 0, [&, node] {
        Worker& worker = cluster.session(node).worker(0);
        Result<Shuffle> shuffle = worker.open_shuffle({id, 0, 1, {0}, {0, 1}});
        ASSERT_TRUE(shuffle.ok()) << shuffle.status().to_string();
        if (node == 0) {
          ASSERT_EQ(shuffle->sender()->send(1, {&kRow, 1}), Outcome::done);
          ASSERT_EQ(shuffle->sender()->flush(), Outcome::done);
          finish_wrongly(SessionAccess::core(cluster.session(0)));
        } else {
          counted.memory.fail_at(number);
        }
        Batch batch;
        Outcome received = Outcome::done;
        while (received == Outcome::done) received = shuffle->receiver()->receive(batch);
        EXPECT_EQ(received, Outcome::failed);
        shuffle->close();
        Status cause;
        EXPECT_EQ(end_query(worker, id, cause), Outcome::failed);
        EXPECT_TRUE(cause.code() == Code::query_failed || cause.code() == Code::overflow_exhausted)
            << "node " << node << ": " << cause.to_string();
        (void)worker.wait_until([] { return false; },
                                Wait::at_most(1s));  // takes what came meanwhile
      });
    }
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
    failed = counted.memory.has_failed();
    counted.memory.fail_at(0);
    for (uint32_t node = 0; node < 2; ++node)
      EXPECT_TRUE(SessionAccess::core(cluster.session(node)).membership().connected(1 - node));
  }
  EXPECT_GT(number, 10u);
}

// --- a condition that receives

TEST(NodeMemory,
     whichever_allocation_fails_what_waits_for_a_condition_leaves_it_to_the_calls_to_tell) {
  uint64_t number = 1;
  uint64_t failures = 0;
  for (bool failed = true; failed && !HasFailure(); ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    CountedCluster counted;
    SimCluster& cluster = counted.cluster;
    ASSERT_TRUE(cluster.open_sessions().ok()) << cluster.world().report();
    const QueryId id = cluster.session(0).begin_query();
    bool waits = false;
    cluster.spawn(0, 0, [&] {
      Worker& worker = cluster.session(0).worker(0);
      Result<Shuffle> shuffle = worker.open_shuffle({id, 0, 1, {0}, {1}});
      ASSERT_TRUE(shuffle.ok()) << shuffle.status().to_string();
      while (!waits) cluster.sleep(1'000);
      Outcome sent = Outcome::done;
      for (int row = 0; row < 3 && sent == Outcome::done; ++row) {
        sent = shuffle->sender()->send(0, {&kRow, 1});
        if (sent == Outcome::done) sent = shuffle->sender()->flush();
      }
      if (sent == Outcome::done) sent = shuffle->sender()->finish();
      shuffle->close();
      Status cause;
      (void)end_query(worker, id, cause);
    });
    cluster.spawn(1, 0, [&] {
      Worker& worker = cluster.session(1).worker(0);
      Result<Shuffle> shuffle = worker.open_shuffle({id, 0, 1, {0}, {1}});
      ASSERT_TRUE(shuffle.ok()) << shuffle.status().to_string();
      Batch batch;
      Outcome received = Outcome::done;
      const std::function<bool()> receives = [&] {
        waits = true;
        received = shuffle->receiver()->receive(batch, Wait::none());
        if (received != Outcome::would_wait) return true;
        cluster.sleep(1'000'000);  // rows come, which what waits finds
        return false;
      };
      counted.memory.fail_at(number);
      while (received == Outcome::done) ASSERT_EQ(worker.wait_until(receives), Outcome::done);
      failed = counted.memory.has_failed();
      counted.memory.fail_at(0);
      failures += received == Outcome::failed;
      if (received == Outcome::failed) {
        EXPECT_EQ(shuffle->status().code(), Code::overflow_exhausted);
      }
      shuffle->close();
      Status cause;
      (void)end_query(worker, id, cause);
    });
    ASSERT_TRUE(cluster.run().ok()) << cluster.world().report();
  }
  EXPECT_GT(failures, 2u);
}

}  // namespace
}  // namespace faro::test
