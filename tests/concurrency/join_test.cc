// RadixJoin over real sessions: every pair comes out once, and every row without a partner that its kind hands out, as nested loops
// have them, whatever the inputs, the keys and the memory; and every way in which it ends.
#include "faro/join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/join_test.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;

TEST_F(JoinTest, hands_out_what_its_kind_says_whatever_the_keys) {
  for (const JoinKind kind : kKinds) {
    for (const Input& input :
         {Input{20'000, distinct, 30'000, distinct}, Input{3000, some, 20'000, some},
          Input{20'000, with_nulls, 20'000, with_nulls}, Input{500, one, 600, one},
          Input{0, one, 1000, some}, Input{1000, some, 0, one}, Input{0, one, 0, one}}) {
      for (const uint64_t modulus : {0, 2}) {
        open();
        Input conditioned = input;
        conditioned.modulus = modulus;
        join(conditioned, spec(kind));
        TearDown();
      }
    }
  }
}

// More build rows than one table takes.
constexpr Input kLarge{300'000, skewed, 300'000, distinct, 3};

TEST_F(JoinTest, a_build_side_that_does_not_fit_the_cache_is_joined_by_partition) {
  for (const JoinKind kind : kKinds) {
    for (const bool takes : {false, true}) {
      open();
      const JoinMetrics metrics = join(kLarge, spec(kind), takes);
      EXPECT_EQ(metrics.gulps, 0u) << "memory suffices";
      EXPECT_EQ(metrics.spilled_bytes, 0u);
      EXPECT_EQ(early_, 0u);
      TearDown();
    }
  }
}

TEST_F(JoinTest, partitions_that_have_rows_of_one_side_alone_give_those_without_a_partner) {
  for (const JoinKind kind : kKinds) {
    for (const Input& input :
         {Input{300'000, distinct, 0, one}, Input{100'000, one, 1000, distinct}}) {
      open();
      join(input, spec(kind));
      TearDown();
    }
  }
}

TEST_F(JoinTest, pairs_of_a_build_side_that_fits_the_cache_come_as_probe_rows_do) {
  open();
  join({2000, distinct, 200'000, distinct}, spec(JoinKind::left), true);
  EXPECT_GT(early_, 0u);
}

TEST_F(JoinTest, what_does_not_fit_the_memory_is_spilled_and_joined) {
  for (const JoinKind kind : kKinds) {
    open({{"operator.memory_bytes", "4 MiB"}, {"overflow.memory_bytes", "1 MiB"}});
    const JoinMetrics metrics = join(kLarge, spec(kind));
    // Rows of 9.6 MB, of which both nodes hold 7 MiB at most.
    EXPECT_GT(metrics.spilled_bytes, uint64_t{2} << 20);
    EXPECT_LE(metrics.peak_bytes, uint64_t{4} << 20);
    TearDown();
  }
}

TEST_F(JoinTest, where_memory_is_short_waiting_rows_are_probed_early) {
  for (const JoinKind kind : kKinds) {
    open({{"operator.memory_bytes", "10 MiB"}});
    const JoinMetrics metrics =
        join({200'000, distinct, 1'500'000, [](uint64_t row) { return row % 250'000; }}, spec(kind),
             true);
    EXPECT_GT(metrics.gulps, 0u);
    EXPECT_LT(metrics.spilled_bytes, 1'500'000 * sizeof(Row) / 2);
    EXPECT_GT(early_, 0u);
    TearDown();
  }
}

TEST_F(JoinTest, output_is_early_if_that_is_wanted) {
  open();
  JoinSpec early = spec(JoinKind::full);
  early.output_early = true;
  const JoinMetrics metrics = join({400'000, distinct, 1'000'000, distinct}, early, true);
  EXPECT_GT(metrics.gulps, 0u);
  EXPECT_GT(early_, 0u);
}

// The memory of a worker holds a table of some thousand rows.
TEST_F(JoinTest, a_partition_with_more_rows_than_memory_is_split) {
  for (const JoinKind kind : kKinds) {
    open({{"operator.memory_bytes", "3 MiB"}});
    JoinSpec gather = spec(kind);
    gather.receivers = {1};
    const JoinMetrics metrics = join({800'000, distinct, 100'000, distinct}, gather);
    EXPECT_GT(metrics.partitions_split, 0u);
    EXPECT_EQ(metrics.passes, 0u);
    TearDown();
  }
}

TEST_F(JoinTest, a_partition_of_one_key_ends_in_a_nested_loop) {
  for (const JoinKind kind : kKinds) {
    open({{"operator.memory_bytes", "3 MiB"}});
    // A probe row matches one build row or two, in whichever pass.
    const JoinMetrics metrics = join({100'000, one, 40, one, 70'001, true}, spec(kind));
    EXPECT_GT(metrics.passes, 0u);
    EXPECT_EQ(metrics.partitions_split, 1u) << "what stays together is not split again";
    TearDown();
  }
}

// --- inputs

TEST_F(JoinTest, build_rows_everywhere_meet_probe_rows_where_they_are_or_partitioned) {
  for (const char* ends : {"workers", "node", "both"}) {
    for (const JoinKind kind : {JoinKind::inner, JoinKind::left, JoinKind::semi, JoinKind::anti}) {
      for (const JoinInput probe : {JoinInput::here, JoinInput::partition}) {
        open({{"lane.ends", ends}});
        JoinSpec broadcast = spec(kind);
        broadcast.build_input = JoinInput::everywhere;
        broadcast.probe_input = probe;
        const JoinMetrics metrics = join({1000, some, 10'000, some, 3}, broadcast, true);
        EXPECT_EQ(metrics.build_rows_received, kWorkers * 1000u);
        EXPECT_EQ(metrics.probe_rows_received, 10'000u);
        TearDown();
      }
    }
  }
}

// Row i of each side lies at worker i % 4, and so do equal keys.
TEST_F(JoinTest, rows_that_lie_by_their_keys_stay_where_they_are) {
  for (const JoinKind kind : kKinds) {
    open();
    JoinSpec here = spec(kind);
    here.build_input = here.probe_input = JoinInput::here;
    join({20'000, distinct, 30'000, distinct, 3}, here, true);
    for (uint32_t w = 0; w < kWorkers; ++w) EXPECT_EQ(cluster_->worker(w).metrics().rows_sent, 0u);
    TearDown();
  }
}

TEST_F(JoinTest, rows_stay_here_though_others_add_theirs_later) {
  open();
  JoinSpec here = spec();
  here.build_input = here.probe_input = JoinInput::here;
  std::atomic<bool> first_is_over{false};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, here));
    if (w != 0) {
      EXPECT_EQ(worker.wait_until([&] { return first_is_over.load(); },
                                  Wait::at_most(milliseconds(20'000))),
                Outcome::done);
    }
    const Row row{w, 1};
    EXPECT_EQ(join->build({&row, 1}).outcome, Outcome::done);
    EXPECT_EQ(join->finish_build(), Outcome::done);
    EXPECT_EQ(join->probe({&row, 1}).outcome, Outcome::done);
    EXPECT_EQ(join->finish_probe(), Outcome::done);
    Pairs pairs;
    take_all(*join, pairs);
    EXPECT_EQ(pairs, (Pairs{{1, 1}}));
    if (w == 0) {
      first_is_over = true;
      for (uint32_t other = 1; other < kWorkers; ++other) cluster_->worker(other).wake();
    }
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
}

struct SentBy : Rows {
  static uint32_t receiver_of(uint64_t key, uint32_t receivers) {
    return static_cast<uint32_t>(key % receivers);
  }
};

TEST_F(JoinTest, the_receiver_of_a_row_is_the_engines) {
  for (const bool by_function : {true, false}) {
    open();
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      const std::vector<Row> rows = Input::of(w, 20'000, some);
      std::vector<uint32_t> receivers;
      for (const Row& row : rows) receivers.push_back(SentBy::receiver_of(row.key, kWorkers));
      auto join = value_of(RadixJoin<SentBy>::make(worker, spec()));
      EXPECT_EQ((by_function ? join->build(rows) : join->build(rows, receivers)).rows, rows.size());
      EXPECT_EQ(join->finish_build(), Outcome::done);
      EXPECT_EQ((by_function ? join->probe(rows) : join->probe(rows, receivers)).rows, rows.size());
      EXPECT_EQ(join->finish_probe(), Outcome::done);
      std::span<const RadixJoin<SentBy>::Pair> pairs;
      uint64_t count = 0;
      while (join->next(pairs) == Outcome::done) {
        for (const auto& [build, probe] : pairs) EXPECT_EQ(build->key % kWorkers, w);
        count += pairs.size();
      }
      EXPECT_GT(count, 0u);
      join.reset();
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
    });
    TearDown();
  }
}

TEST_F(JoinTest, some_add_and_others_take) {
  open();
  JoinSpec gather = spec(JoinKind::full);
  gather.senders = {0, 1, 2};
  gather.receivers = {3};
  Pairs pairs;
  const Input input{3000, distinct, 4000, distinct};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, gather));
    Pairs own;
    if (w < 3) {
      build_all(*join, w == 0 ? Input::of(0, 12'000, [](uint64_t row) { return row / 4; })
                              : std::vector<Row>());
      probe_all(
          *join,
          w == 1 ? Input::of(0, 16'000, [](uint64_t row) { return row / 4; }) : std::vector<Row>(),
          false, own);
    } else {
      const Row row{1, 1};
      EXPECT_EQ(join->build({&row, 1}).outcome, Outcome::failed);
      expect_error(join->status(), Code::wrong_state, {"build rows", "none of its senders"});
      EXPECT_EQ(join->finish_build(), Outcome::done);
      EXPECT_EQ(join->finish_probe(), Outcome::done);
    }
    take_all(*join, own);
    EXPECT_EQ(own.empty(), w != 3);
    if (w == 3) pairs = own;
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  EXPECT_EQ(pairs.size(), input.expected(JoinKind::full).size());
}

// --- waiting

TEST_F(JoinTest, workers_that_only_add_do_not_wait_for_each_other) {
  open(small_rings());
  std::atomic<uint32_t> added{0};
  Pairs pairs;
  std::mutex mutex;
  const Input input{100'000, distinct, 100'000, distinct};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, spec()));
    const auto all_have = [&](uint32_t steps) {
      ++added;
      EXPECT_EQ(worker.wait_until([&] { return added >= steps * kWorkers; },
                                  Wait::at_most(milliseconds(20'000))),
                Outcome::done);
    };
    add_all(*join, input.of_build(w), [&](auto rows) { return join->build(rows); });
    EXPECT_EQ(worker.metrics().frames_spilled, 0u) << "a wait takes in what comes";
    all_have(1);
    EXPECT_EQ(join->finish_build(), Outcome::done);
    add_all(*join, input.of_probe(w), [&](auto rows) { return join->probe(rows); });
    all_have(2);
    EXPECT_EQ(join->finish_probe(), Outcome::done);
    Pairs own;
    take_all(*join, own);
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
    const std::lock_guard lock(mutex);
    pairs.insert(pairs.end(), own.begin(), own.end());
  });
  std::ranges::sort(pairs);
  EXPECT_TRUE(pairs == input.expected(JoinKind::inner));
}

TEST_F(JoinTest, a_worker_that_holds_a_batch_is_told_so) {
  open(small_rings());
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, spec()));
    Shuffle other = value_of(worker.open_shuffle({query_, 10 + w, 8, {w}, {w}}));
    const uint64_t number = 1;
    ASSERT_EQ(other.sender<uint64_t>()->send(0, number), Outcome::done);
    ASSERT_EQ(other.sender()->finish(), Outcome::done);
    Batch held;
    ASSERT_EQ(other.receiver()->receive(held), Outcome::done);
    const std::vector<Row> rows = Input::of(w, 80'000, some);
    const Sent sent = join->build(rows);
    EXPECT_EQ(sent.outcome, Outcome::holding);
    EXPECT_LT(sent.rows, rows.size());
    EXPECT_EQ(worker.metrics().frames_out_overflow, 0u) << "nothing is spilled without bound";
    held.release();
    EXPECT_EQ(other.receiver()->receive(held), Outcome::end_of_stream);
    other.close();
    EXPECT_EQ(join->build(std::span(rows).subspan(sent.rows)).outcome, Outcome::done);
    EXPECT_EQ(join->finish_build(), Outcome::done);
    EXPECT_EQ(join->finish_probe(), Outcome::done);
    Pairs pairs;
    take_all(*join, pairs);
    EXPECT_TRUE(pairs.empty());
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
}

TEST_F(JoinTest, a_call_whose_time_has_passed_is_made_again_and_goes_on) {
  for (const JoinKind kind : kKinds) {
    open({{"operator.memory_bytes", "3 MiB"}});
    // A probe row meets thousands of rows of its key, none of which is its partner.
    const Input input{30'000, one, 100, one, 1'000'003, true};
    std::atomic<uint64_t> deadlines{0};
    Pairs pairs;
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      std::unique_ptr<Join> join =
          value_of(Join::make(worker, spec(kind), {input.modulus, input.is_rare}));
      build_all(*join, input.of_build(w));
      Pairs own;
      probe_all(*join, input.of_probe(w), false, own);
      Outcome outcome = Outcome::done;
      while (outcome != Outcome::end_of_stream) {
        std::span<const Join::Pair> some;
        outcome = join->next(some, Wait::at_most(std::chrono::nanoseconds(1)));
        deadlines += outcome == Outcome::deadline ? 1 : 0;
        ASSERT_NE(outcome, Outcome::failed) << join->status().to_string();
        add_pairs(some, own);
      }
      join.reset();
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
      if (!own.empty()) pairs = own;
    });
    std::ranges::sort(pairs);
    EXPECT_TRUE(pairs == input.expected(kind));
    EXPECT_GT(deadlines, 30'000u * 100 / 4096 / 2) << "the time is looked at within a partition";
    TearDown();
  }
}

// --- beside others that have the memory of the node

/// Keys of one hash, so that all rows are in one partition; of a probe row none has a partner.
struct OneHash : Rows {
  static uint64_t hash(uint64_t) { return 0; }
  static bool is_null(uint64_t key) { return key >= kFirstNull; }
  static constexpr uint64_t kFirstNull = 1'000'000;
};
using OneHashJoin = RadixJoin<OneHash>;
// A table of as many rows takes nearly what a join has to itself.
constexpr uint64_t kRowsOfTightTable = 36'000;

class JoinBesideOthers : public JoinTest {
 protected:
  /// A join of one worker that has all memory of its node which is not reserved.
  std::unique_ptr<Join> make_hoard(Worker& worker) {
    JoinSpec hoard = spec();
    hoard.stage = 10;
    hoard.senders = hoard.receivers = {0};
    hoard.build_input = hoard.probe_input = JoinInput::here;
    std::unique_ptr<Join> join = value_of(Join::make(worker, hoard));
    uint64_t key = 0;
    while (join->metrics().spilled_bytes == 0) {
      const Row row{key++, 1};
      if (join->build({&row, 1}).outcome != Outcome::done) break;
    }
    EXPECT_GT(join->metrics().spilled_bytes, 0u) << join->status().to_string();
    return join;
  }
  static void finish(Join& hoard) {
    EXPECT_EQ(hoard.stop(), Outcome::done);
    EXPECT_EQ(hoard.finish_build(), Outcome::done);
    EXPECT_EQ(hoard.finish_probe(), Outcome::done);
  }
  static void add_rows(OneHashJoin& join, uint64_t count) {
    std::vector<Row> build, probe;
    for (uint64_t i = 0; i < count; ++i) {
      build.push_back({i, i + 1});
      probe.push_back({OneHash::kFirstNull + i, i + 1});
    }
    EXPECT_EQ(join.build(build).outcome, Outcome::done) << join.status().to_string();
    EXPECT_EQ(join.finish_build(), Outcome::done);
    EXPECT_EQ(join.probe(probe).outcome, Outcome::done) << join.status().to_string();
    EXPECT_EQ(join.finish_probe(), Outcome::done) << join.status().to_string();
  }
  /// How many pairs come until the end, or until the time is over.
  static uint64_t count_pairs(OneHashJoin& join, Wait wait, Outcome& outcome) {
    uint64_t count = 0;
    std::span<const OneHashJoin::Pair> pairs;
    while ((outcome = join.next(pairs, wait)) == Outcome::done) count += pairs.size();
    return count;
  }
  /// Worker 1 joins while worker 0, which adds no rows, has the memory. `between`: before worker 0 finishes the probe side.
  template <typename Between>
  void run(JoinSpec spec, uint64_t rows, const Between& between) {
    spec.kind = JoinKind::left;
    spec.senders = {0, 1};
    spec.receivers = {1};
    std::atomic<uint32_t> steps{0};
    const auto wait_for_step = [&](Worker& worker, uint32_t step) {
      EXPECT_EQ(worker.wait_until([&] { return steps >= step; }), Outcome::done);
    };
    const auto take_step = [&] {
      ++steps;
      for (uint32_t w = 0; w < 2; ++w) cluster_->worker(w).wake();
    };
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      if (w < 2) {
        auto join = value_of(OneHashJoin::make(worker, spec));
        take_step();
        wait_for_step(worker, 2);
        Outcome outcome = Outcome::done;
        if (w == 0) {
          const std::unique_ptr<Join> hoard = make_hoard(worker);
          take_step();
          EXPECT_EQ(join->finish_build(), Outcome::done);
          wait_for_step(worker, 4);
          EXPECT_EQ(join->finish_probe(), Outcome::done);
          wait_for_step(worker, 5);
          finish(*hoard);
          EXPECT_EQ(count_pairs(*join, Wait::forever(), outcome), 0u);
        } else {
          wait_for_step(worker, 3);
          add_rows(*join, rows);
          uint64_t count = between(*join);
          take_step();
          count += count_pairs(*join, Wait::forever(), outcome);
          EXPECT_EQ(count, rows);
          take_step();
        }
        EXPECT_EQ(outcome, Outcome::end_of_stream) << join->status().to_string();
      }
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
    });
  }
};

TEST_F(JoinBesideOthers, a_table_leaves_room_to_read_what_was_spilled) {
  for (const uint64_t rows :
       {kRowsOfTightTable - 1000, kRowsOfTightTable, kRowsOfTightTable + 100}) {
    open({{"operator.memory_bytes", "16 MiB"}});
    run(spec(), rows, [](OneHashJoin&) { return 0; });
    TearDown();
  }
}

TEST_F(JoinBesideOthers, a_gulp_for_whose_table_there_is_no_memory_waits_for_the_end) {
  open({{"operator.memory_bytes", "16 MiB"}});
  JoinSpec early = spec();
  early.output_early = true;
  run(early, 45'000, [](OneHashJoin& join) {
    Outcome outcome;
    const uint64_t count = count_pairs(join, Wait::at_most(milliseconds(50)), outcome);
    EXPECT_EQ(outcome, Outcome::deadline);
    EXPECT_EQ(join.metrics().gulps, 0u);
    return count;
  });
}

// --- use

TEST_F(JoinTest, wrong_use_is_refused_and_the_query_goes_on) {
  open();
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    JoinSpec wrong = spec(JoinKind::full);
    wrong.build_input = JoinInput::everywhere;
    expect_error(Join::make(worker, wrong).status(), Code::invalid_argument, {"everywhere"});
    wrong = spec();
    wrong.probe_input = JoinInput::everywhere;
    expect_error(Join::make(worker, wrong).status(), Code::invalid_argument, {"everywhere"});
    wrong = spec();
    wrong.stage = ShuffleSpec::kStageLimit - 2;
    expect_error(Join::make(worker, wrong).status(), Code::invalid_argument, {"four stages"});

    std::unique_ptr<Join> join = value_of(Join::make(worker, spec(JoinKind::left)));
    const Row row{w, w + 1};
    const uint32_t nobody = kWorkers, receivers[] = {0, 1};
    std::span<const Join::Pair> pairs;
    const auto refused = [&](Outcome outcome, Code code, std::initializer_list<const char*> words) {
      EXPECT_EQ(outcome, Outcome::failed);
      for (const char* word : words) expect_error(join->status(), code, {word});
    };
    refused(join->probe({&row, 1}).outcome, Code::wrong_state, {"probe rows", "before"});
    refused(join->finish_probe(), Code::wrong_state, {"before its build side"});
    refused(join->next(pairs), Code::wrong_state, {"before its finish_build"});
    refused(join->build({&row, 1}, receivers).outcome, Code::invalid_argument,
            {"a receiver for each"});
    refused(join->build({&row, 1}, {&nobody, 1}).outcome, Code::invalid_argument, {"receiver"});
    EXPECT_EQ(join->build({&row, 1}).outcome, Outcome::done);
    EXPECT_EQ(join->finish_build(), Outcome::done);
    EXPECT_EQ(join->finish_build(), Outcome::done) << "once more";
    refused(join->build({&row, 1}).outcome, Code::wrong_state, {"build rows", "after"});
    EXPECT_EQ(join->probe({&row, 1}).outcome, Outcome::done);
    EXPECT_EQ(join->finish_probe(), Outcome::done);
    refused(join->probe({&row, 1}).outcome, Code::wrong_state, {"probe rows", "after"});
    Pairs own;
    take_all(*join, own);
    EXPECT_EQ(join->next(pairs), Outcome::end_of_stream) << "once more";
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
}

TEST_F(JoinTest, workers_that_join_in_another_way_fail_the_query_with_both_texts) {
  open();
  std::mutex mutex;
  std::string causes;
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    {
      // Whoever comes late is told by make.
      const auto join = Join::make(worker, spec(w == 0 ? JoinKind::left : JoinKind::inner));
      std::span<const Join::Pair> pairs;
      const bool has_added = join.ok() && (*join)->finish_build() == Outcome::done &&
                             (*join)->finish_probe() == Outcome::done;
      EXPECT_NE(has_added ? (*join)->next(pairs) : Outcome::failed, Outcome::done);
    }
    EXPECT_EQ(worker.end_query(query_), Outcome::failed);
    const std::lock_guard lock(mutex);
    causes += worker.status().to_string();
  });
  expect_contains(causes, "left join");
  expect_contains(causes, "inner join");
}

TEST_F(JoinTest, one_for_which_there_is_no_memory_is_refused) {
  open({{"operator.memory_bytes", "1 MiB"}});
  Worker& worker = cluster_->worker(0);
  std::unique_ptr<Join> first;
  Result<std::unique_ptr<Join>> made = Join::make(worker, spec());
  for (uint32_t stage = 4; made.ok(); stage += 4) {
    first = std::move(*made);
    JoinSpec next = spec();
    next.stage = stage;
    made = Join::make(worker, next);
  }
  expect_error(made.status(), Code::limit_exceeded, {"a join", "operator.memory_bytes"});
  first.reset();
  (void)worker.end_query(query_, Status(Code::query_failed, "over"));
  worker.release_ownership();
  cluster_->run_workers([&](uint32_t w) { (void)cluster_->worker(w).end_query(query_); });
}

// A row that fits no frame of a ring of 4 KiB.
struct LargeRow {
  uint64_t key;
  uint64_t values[300];
};
struct LargeRows {
  using Build = LargeRow;
  using Probe = LargeRow;
  using Key = uint64_t;
  uint64_t build_key(const LargeRow& row) const { return row.key; }
  uint64_t probe_key(const LargeRow& row) const { return row.key; }
};

TEST_F(JoinTest, rows_may_be_larger_than_frames) {
  open(small_rings());
  std::atomic<uint64_t> count{0}, sum{0};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    auto join = value_of(RadixJoin<LargeRows>::make(worker, spec()));
    for (uint64_t i = 0; i < 100; ++i) {
      LargeRow row{w * 100 + i, {}};
      row.values[299] = i;
      ASSERT_EQ(join->build({&row, 1}).outcome, Outcome::done);
    }
    EXPECT_EQ(join->finish_build(), Outcome::done);
    for (uint64_t i = 0; i < 200; ++i) {
      const LargeRow row{i, {}};
      ASSERT_EQ(join->probe({&row, 1}).outcome, Outcome::done);
    }
    EXPECT_EQ(join->finish_probe(), Outcome::done);
    std::span<const RadixJoin<LargeRows>::Pair> pairs;
    while (join->next(pairs) == Outcome::done) {
      count += pairs.size();
      for (const auto& [build, probe] : pairs) sum += build->values[299];
    }
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  EXPECT_EQ(count, kWorkers * 200u);
  EXPECT_EQ(sum, kWorkers * 2u * 4950u);
}

// --- ends

/// Where a worker is when its query, or its session, ends.
enum class Phase { building, built, probing, waiting, taking, looping };

class JoinEnds : public JoinTest, public testing::WithParamInterface<Phase> {
 protected:
  void open_small() {
    open(small_rings({{"operator.memory_bytes", "5 MiB"}, {"overflow.memory_bytes", "1 MiB"}}));
  }
  /// In the phase of a nested loop no pair comes of millions of comparisons.
  Rows rows() const { return GetParam() == Phase::looping ? Rows{UINT64_MAX, true} : Rows{}; }
  void reach(Phase here) {
    if (GetParam() == here) ++there_;
  }
  /// Goes on in its phase until a call answers failed.
  void work(Worker& worker, uint32_t w, Join& join) {
    const Phase phase = GetParam();
    const std::vector<Row> rows = Input::of(w, 200'000, phase == Phase::looping ? one : distinct);
    Outcome outcome = join.build(rows).outcome;
    reach(Phase::building);
    while (phase == Phase::building && outcome == Outcome::done) outcome = join.build(rows).outcome;
    if (outcome == Outcome::done) outcome = join.finish_build();
    reach(Phase::built);
    if (phase == Phase::built) wait_for_the_end(worker, join);
    if (outcome == Outcome::done) outcome = join.probe(rows).outcome;
    reach(Phase::probing);
    while (phase == Phase::probing && outcome == Outcome::done) outcome = join.probe(rows).outcome;
    // One does not finish: the others wait for it.
    reach(Phase::waiting);
    while (phase == Phase::waiting && w == 0 && outcome == Outcome::done)
      outcome = join.probe({rows.data(), 1}).outcome;
    if (outcome == Outcome::done) outcome = join.finish_probe();
    reach(Phase::looping);
    std::span<const Join::Pair> pairs;
    while (outcome == Outcome::done) {
      outcome = join.next(pairs);
      reach(Phase::taking);
      if (phase != Phase::looping && outcome == Outcome::done) wait_for_the_end(worker, join);
      // Who has none of the key is at the end.
      if (outcome == Outcome::end_of_stream) wait_for_the_end(worker, join);
    }
    if (outcome == Outcome::end_of_stream) outcome = join.finish_probe();
    EXPECT_EQ(outcome, Outcome::failed);
  }
  /// Until this node knows of it, too.
  void wait_for_the_end(Worker& worker, Join& join) {
    (void)worker.wait_until(
        [&] { return ended_ && join.finish_build(Wait::none()) == Outcome::failed; });
  }
};

TEST_P(JoinEnds, cancel_is_seen_and_leaves_nothing) {
  open_small();
  cancel_while([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, spec(JoinKind::full), rows()));
    work(worker, w, *join);
    expect_error(join->status(), Code::query_cancelled, {"enough"});
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::failed);
  });
}

TEST_P(JoinEnds, close_is_seen_and_leaves_nothing) {
  open_small();
  close_while([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, spec(JoinKind::full), rows()));
    work(worker, w, *join);
    EXPECT_FALSE(join->status().ok());
  });
}

std::string name_of_phase(const testing::TestParamInfo<Phase>& info) {
  constexpr const char* kNames[] = {"building", "built", "probing", "waiting", "taking", "looping"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Each, JoinEnds,
                         testing::Values(Phase::building, Phase::built, Phase::probing,
                                         Phase::waiting, Phase::taking, Phase::looping),
                         name_of_phase);

TEST_F(JoinTest, that_is_destroyed_before_its_last_pair_fails_the_query) {
  open();
  std::mutex mutex;
  std::string causes;
  const Input input{20'000, distinct, 20'000, distinct};
  std::atomic<uint32_t> probed{0};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, spec()));
    build_all(*join, input.of_build(w));
    Pairs pairs;
    probe_all(*join, input.of_probe(w), false, pairs);
    ++probed;
    EXPECT_EQ(worker.wait_until([&] { return probed == kWorkers; }), Outcome::done);
    std::span<const Join::Pair> some;
    Outcome outcome = join->next(some);
    while (w != 1 && outcome == Outcome::done) outcome = join->next(some);
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::failed);
    const std::lock_guard lock(mutex);
    causes += worker.status().to_string();
  });
  expect_contains(causes, "worker 1 closed its join of stage 0 before its end, without stop");
}

TEST_F(JoinTest, a_receiver_that_stops_gets_no_pair_and_the_query_goes_on) {
  for (const JoinInput where : {JoinInput::partition, JoinInput::here}) {
    for (const bool at_once : {true, false}) {
      open(small_rings());
      JoinSpec made = spec();
      made.build_input = made.probe_input = where;
      const Input input{40'000, distinct, 40'000, distinct};
      std::atomic<uint64_t> count{0};
      cluster_->run_workers([&](uint32_t w) {
        Worker& worker = cluster_->worker(w);
        std::unique_ptr<Join> join = value_of(Join::make(worker, made));
        EXPECT_EQ(w == 2 && at_once ? join->stop() : Outcome::done, Outcome::done);
        build_all(*join, input.of_build(w));
        EXPECT_EQ(w == 2 ? join->stop() : Outcome::done, Outcome::done);
        Pairs pairs;
        add_all(*join, input.of_probe(w), [&](auto rows) { return join->probe(rows); });
        EXPECT_EQ(join->finish_probe(), Outcome::done);
        take_all(*join, pairs);
        EXPECT_EQ(pairs.empty(), w == 2);
        count += pairs.size();
        join.reset();
        EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
      });
      EXPECT_GT(count, 20'000u);
      EXPECT_LT(count, 40'000u);
      TearDown();
    }
  }
}

}  // namespace
}  // namespace faro::test
