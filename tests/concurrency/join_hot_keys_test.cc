// Hot keys of a join: their probe rows are joined where they are added, by build rows that the owner of the key has sent there; each
// once, whatever becomes of the lists, and nobody waits for one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "faro/join.h"
#include "support/join_test.h"

namespace faro::test {
namespace {

constexpr uint64_t kHot = 7;
constexpr JoinKind kKindsWithLists[] = {JoinKind::inner, JoinKind::left, JoinKind::semi,
                                        JoinKind::anti};

/// Three build rows have the hot key.
uint64_t hot_thrice(uint64_t row) { return row < 3 ? kHot : row + 100; }
uint64_t never_hot(uint64_t row) { return row + 100; }
/// Every other row of each worker has the hot key.
uint64_t half_hot(uint64_t row) { return row / kWorkers % 2 == 0 ? kHot : drawn(row) % 10'000; }
uint64_t half_null(uint64_t row) { return row / kWorkers % 2 == 0 ? kNull : drawn(row) % 10'000; }
/// A third of the rows have three keys, which have many build rows each.
constexpr uint64_t kRowsOfThree = 12'000;
uint64_t of_three(uint64_t row) { return row < kRowsOfThree ? row % 3 : row + 100; }
uint64_t one_of_three(uint64_t row) { return row / kWorkers % 3; }

// By then the owner of a key has seen that it is hot.
constexpr uint64_t kFirstRows = 40'000;

uint32_t owner_of(uint64_t key) { return partition(FinalizerHash{}(key), kWorkers); }

class JoinHotKeys : public JoinTest {
 protected:
  /// What each worker has done.
  using Done = std::array<JoinMetrics, kWorkers>;

  /// Joins kFirstRows of the probe rows, waits until `lists` lists are at every worker that is not the owner of their keys, and
  /// joins the others.
  Done join_in_two_steps(const Input& input, const JoinSpec& spec, uint64_t lists = 1) {
    Done done;
    std::mutex mutex;
    Pairs pairs;
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      std::unique_ptr<Join> join =
          value_of(Join::make(worker, spec, {input.modulus, input.is_rare}));
      meet(worker);
      Pairs own;
      build_all(*join, input.of_build(w));
      const std::vector<Row> rows = input.of_probe(w);
      const size_t first = kFirstRows / kWorkers;
      add_probe(*join, std::span(rows).first(first), own);
      wait_for_lists(worker, *join, lists, own);
      kept_before_[w] = join->metrics().probe_rows_kept;
      add_probe(*join, std::span(rows).subspan(first), own);
      EXPECT_EQ(join->finish_probe(), Outcome::done) << join->status().to_string();
      take_all(*join, own);
      done[w] = join->metrics();
      join.reset();
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
      const std::lock_guard lock(mutex);
      pairs.insert(pairs.end(), own.begin(), own.end());
    });
    std::ranges::sort(pairs);
    EXPECT_TRUE(pairs == input.expected(spec.kind));
    uint64_t joined = 0;
    for (const JoinMetrics& each : done) joined += each.probe_rows_received + each.probe_rows_kept;
    EXPECT_EQ(joined, input.probe_rows) << "each at its owner or at home";
    return done;
  }
  static void add_probe(Join& join, std::span<const Row> rows, Pairs& pairs) {
    const Sent sent = join.probe(rows);
    EXPECT_EQ(sent.rows, rows.size()) << join.status().to_string();
    take_ready(join, pairs);
  }
  static void take_ready(Join& join, Pairs& pairs) {
    std::span<const Join::Pair> some;
    while (join.next(some, Wait::none()) == Outcome::done) add_pairs(some, pairs);
  }
  /// Each list is at three workers, held or dropped.
  void wait_for_lists(Worker& worker, Join& join, uint64_t lists, Pairs& pairs) {
    uint64_t here = 0;
    const auto are_there = [&] {
      take_ready(join, pairs);
      const JoinMetrics metrics = join.metrics();
      if (const uint64_t now = metrics.lists_held + metrics.lists_dropped; now > here) {
        lists_ += now - here;
        here = now;
        for (uint32_t w = 0; w < kWorkers; ++w) cluster_->worker(w).wake();
      }
      return lists_ >= (kWorkers - 1) * lists || ended_;
    };
    EXPECT_EQ(worker.wait_until(are_there), Outcome::done);
  }
  void TearDown() override {
    JoinTest::TearDown();
    lists_ = 0;
  }

  std::atomic<uint64_t> lists_{0};  // times that one is at a worker
  std::array<uint64_t, kWorkers> kept_before_{};
};

TEST_F(JoinHotKeys, their_probe_rows_are_joined_where_they_are_added) {
  // One table; and partitions.
  for (const uint64_t build_rows : {2000, 300'000}) {
    for (const JoinKind kind : kKindsWithLists) {
      for (const uint64_t modulus : {0, 3}) {
        open();
        const Input input{build_rows, hot_thrice, 2 * kFirstRows, half_hot, modulus};
        const Done done = join_in_two_steps(input, spec(kind));
        for (uint32_t w = 0; w < kWorkers; ++w) {
          const bool is_owner = w == owner_of(kHot);
          EXPECT_EQ(done[w].hot_keys, is_owner ? 1u : 0u);
          EXPECT_EQ(done[w].lists_held, is_owner ? 0u : 1u);
          EXPECT_EQ(done[w].probe_rows_kept - kept_before_[w],
                    is_owner ? 0u : kFirstRows / kWorkers / 2)
              << "of the second step, all with this key";
        }
        TearDown();
      }
    }
  }
}

TEST_F(JoinHotKeys, that_have_no_build_row_or_are_null_are_known_for_that) {
  for (const Input& input : {Input{2000, never_hot, 2 * kFirstRows, half_hot},
                             Input{300'000, never_hot, 2 * kFirstRows, half_hot},
                             Input{2000, with_nulls, 2 * kFirstRows, half_null}}) {
    for (const JoinKind kind : kKindsWithLists) {
      open();
      const Done done = join_in_two_steps(input, spec(kind));
      for (uint32_t w = 0; w < kWorkers; ++w) {
        if (done[w].hot_keys > 0) continue;
        EXPECT_GE(done[w].probe_rows_kept, kFirstRows / kWorkers / 2);
      }
      TearDown();
    }
  }
}

TEST_F(JoinHotKeys, with_little_memory_are_joined_in_gulps_and_from_what_was_spilled) {
  for (const JoinKind kind : kKindsWithLists) {
    open({{"operator.memory_bytes", "6 MiB"}, {"overflow.memory_bytes", "1 MiB"}});
    JoinSpec early = spec(kind);
    early.output_early = true;
    JoinMetrics all;
    for (const JoinMetrics& each :
         join_in_two_steps({100'000, hot_thrice, 600'000, half_hot, 3}, early)) {
      all.gulps += each.gulps;
      all.spilled_bytes += each.spilled_bytes;
      all.probe_rows_kept += each.probe_rows_kept;
    }
    EXPECT_GT(all.gulps, 0u);
    EXPECT_GT(all.spilled_bytes, 0u);
    EXPECT_GT(all.probe_rows_kept, 0u);
    TearDown();
  }
}

TEST_F(JoinHotKeys, of_whose_lists_not_all_have_room_are_sent_on) {
  for (const JoinKind kind : {JoinKind::semi, JoinKind::anti}) {
    open({{"operator.memory_bytes", "3 MiB"}});
    const Done done = join_in_two_steps({3 * kRowsOfThree, of_three, 2 * kFirstRows, one_of_three},
                                        spec(kind), 3);
    uint64_t held = 0, dropped = 0;
    for (const JoinMetrics& each : done) held += each.lists_held, dropped += each.lists_dropped;
    EXPECT_EQ(held + dropped, 3 * (kWorkers - 1));
    EXPECT_GT(held, 0u);
    EXPECT_GT(dropped, 0u);
    TearDown();
  }
}

TEST_F(JoinHotKeys, with_too_many_build_rows_stay_where_they_are) {
  open();
  const JoinMetrics metrics = join({20'000, one, 30'000, one}, spec(JoinKind::semi));
  EXPECT_EQ(metrics.hot_keys, 0u);
  EXPECT_EQ(metrics.probe_rows_kept, 0u);
}

TEST_F(JoinHotKeys, can_be_turned_off_and_right_and_full_joins_have_none) {
  for (const JoinKind kind : kKinds) {
    open();
    JoinSpec off = spec(kind);
    off.hot_keys = detail::keeps_build(kind);
    const JoinMetrics metrics = join({2000, hot_thrice, 200'000, half_hot}, off, true);
    EXPECT_EQ(metrics.hot_keys, 0u);
    EXPECT_EQ(metrics.probe_rows_kept, 0u);
    EXPECT_EQ(metrics.probe_rows_received, 200'000u);
    TearDown();
  }
}

TEST_F(JoinHotKeys, have_no_lists_where_everybody_has_all_build_rows) {
  open();
  JoinSpec everywhere = spec();
  everywhere.build_input = JoinInput::everywhere;
  const JoinMetrics metrics = join({2000, hot_thrice, 200'000, half_hot}, everywhere, true);
  EXPECT_EQ(metrics.hot_keys, 0u);
  EXPECT_EQ(metrics.probe_rows_kept, 0u);
}

TEST_F(JoinHotKeys, that_are_on_at_one_worker_and_off_at_another_fail_the_query_with_both_texts) {
  open();
  std::mutex mutex;
  std::string causes;
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    JoinSpec mixed = spec();
    mixed.hot_keys = w == 0;
    {
      const auto join = Join::make(worker, mixed);
      std::span<const Join::Pair> pairs;
      const bool has_added = join.ok() && (*join)->finish_build() == Outcome::done &&
                             (*join)->finish_probe() == Outcome::done;
      EXPECT_NE(has_added ? (*join)->next(pairs) : Outcome::failed, Outcome::done);
    }
    EXPECT_EQ(worker.end_query(query_), Outcome::failed);
    const std::lock_guard lock(mutex);
    causes += worker.status().to_string();
  });
  expect_contains(causes, "hot keys on");
  expect_contains(causes, "hot keys off");
}

// By turns one worker adds rows, when all pairs of those before are there: at whichever worker they come out.
TEST_F(JoinHotKeys, let_no_worker_wait_whose_input_is_the_output_of_another) {
  open(small_rings());
  constexpr uint32_t kRounds = 24;
  constexpr uint64_t kRowsOfRound = 2000;
  std::atomic<uint64_t> pairs{0}, kept{0};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, spec()));
    build_all(*join, w == 0 ? std::vector<Row>{{kHot, 1}} : std::vector<Row>());
    const std::vector<Row> rows(kRowsOfRound, Row{kHot, 1});
    for (uint32_t round = 0; round < kRounds; ++round) {
      if (round % kWorkers == w) {
        EXPECT_EQ(join->probe(rows).rows, rows.size());
      }
      const auto are_there = [&] {
        Pairs ready;
        take_ready(*join, ready);
        pairs += ready.size();
        if (!ready.empty()) {
          for (uint32_t other = 0; other < kWorkers; ++other) cluster_->worker(other).wake();
        }
        return pairs >= (round + 1) * kRowsOfRound;
      };
      EXPECT_EQ(worker.wait_until(are_there), Outcome::done);
    }
    EXPECT_EQ(join->finish_probe(), Outcome::done);
    Pairs rest;
    take_all(*join, rest);
    EXPECT_TRUE(rest.empty());
    kept += join->metrics().probe_rows_kept;
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  EXPECT_EQ(pairs, kRounds * kRowsOfRound);
  EXPECT_GT(kept, 0u);
}

TEST_F(JoinHotKeys, of_a_worker_that_stops_are_sent_on_to_their_owner) {
  for (const bool is_owner : {false, true}) {
    open();
    const Input input{2000, hot_thrice, 2 * kFirstRows, half_hot};
    const uint32_t stops = (owner_of(kHot) + (is_owner ? 0 : 1)) % kWorkers;
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      std::unique_ptr<Join> join = value_of(Join::make(worker, spec()));
      build_all(*join, input.of_build(w));
      const std::vector<Row> rows = input.of_probe(w);
      Pairs own;
      add_probe(*join, std::span(rows).first(rows.size() / 2), own);
      wait_for_lists(worker, *join, 1, own);
      EXPECT_EQ(w == stops ? join->stop() : Outcome::done, Outcome::done);
      const uint64_t kept = join->metrics().probe_rows_kept;
      EXPECT_EQ(join->probe(std::span(rows).subspan(rows.size() / 2)).outcome, Outcome::done);
      const uint64_t more = join->metrics().probe_rows_kept - kept;
      EXPECT_EQ(more, w == stops || w == owner_of(kHot) ? 0 : rows.size() / 4);
      EXPECT_EQ(join->finish_probe(), Outcome::done);
      take_all(*join, own);
      EXPECT_EQ(join->stop(), Outcome::done) << "once more, or after its end";
      join.reset();
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
    });
    TearDown();
  }
}

// --- lists that come while something else is being done

class JoinAdoption : public JoinHotKeys {
 protected:
  using Joined = detail::PartitionJoin<Rows>;
  void make_part() {
    open();
    std::vector<detail::OperatorPart::Stage> stages;
    stages.push_back({{query_, 0, sizeof(Row), {}, {}}, [](Batch&) { return true; }});
    part_ = value_of(detail::OperatorPart::make(cluster_->worker(0), OperatorKind::join,
                                                Join::reserve_bytes(), std::move(stages)));
  }
  void TearDown() override {
    part_.reset();
    JoinHotKeys::TearDown();
  }

  const Rows what_;
  std::unique_ptr<detail::OperatorPart> part_;
};

TEST_F(JoinAdoption, of_a_list_while_the_table_is_made_loses_no_row) {
  make_part();
  constexpr uint64_t kRows = 1000;
  Joined joined(*part_, what_, JoinKind::inner, false);
  const std::vector<Row> rows = Input::of(0, kWorkers * kRows, distinct);
  ASSERT_TRUE(joined.take_build(rows));
  joined.build_ended();
  // A call whose time has passed ends anywhere: some rows are in the table, others in partitions.
  std::span<const Join::Pair> pairs;
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(joined.next(pairs, [] { return true; }), Outcome::deadline);
  const Row listed{1, 1};  // none of the keys of the rows
  EXPECT_EQ(joined.adopt({&listed, 1}), detail::Adoption::done);
  ASSERT_TRUE(joined.take_probe(rows));
  ASSERT_TRUE(joined.keep_probe(listed, 0, true));
  joined.probe_ended();
  uint64_t count = 0;
  while (joined.next(pairs, [] { return false; }) == Outcome::done) count += pairs.size();
  EXPECT_EQ(count, kRows + 1);
}

// --- ends

/// Where a worker is when its query, or its session, ends: its lists are there, or are to come.
enum class Phase { listing, probing, waiting, taking };

class JoinHotKeysEnd : public JoinHotKeys, public testing::WithParamInterface<Phase> {
 protected:
  void reach(Phase here) {
    if (GetParam() == here) ++there_;
  }
  void work(Worker& worker, uint32_t w, Join& join) {
    const Phase phase = GetParam();
    const Input input{2000, hot_thrice, kFirstRows, half_hot};
    const std::vector<Row> rows = input.of_probe(w);
    Outcome outcome = join.build(input.of_build(w)).outcome;
    if (outcome == Outcome::done) outcome = join.finish_build();
    if (outcome == Outcome::done) outcome = join.probe(rows).outcome;
    reach(Phase::listing);
    Pairs own;
    if (phase == Phase::listing) {
      while (outcome == Outcome::done) outcome = join.probe({rows.data(), 20}).outcome;
    } else {
      wait_for_lists(worker, join, 1, own);
    }
    reach(Phase::probing);
    while (phase == Phase::probing && outcome == Outcome::done) outcome = join.probe(rows).outcome;
    reach(Phase::waiting);
    while (phase == Phase::waiting && w == 0 && outcome == Outcome::done)
      outcome = join.probe({rows.data(), 1}).outcome;
    if (outcome == Outcome::done) outcome = join.probe(rows).outcome;
    if (outcome == Outcome::done) outcome = join.finish_probe();
    std::span<const Join::Pair> pairs;
    while (outcome == Outcome::done) {
      outcome = join.next(pairs);
      reach(Phase::taking);
      if (outcome == Outcome::done || outcome == Outcome::end_of_stream)
        outcome = wait_for_the_end(worker, join);
    }
    EXPECT_EQ(outcome, Outcome::failed);
  }
  /// Until this node knows of it, too.
  Outcome wait_for_the_end(Worker& worker, Join& join) {
    Outcome outcome = Outcome::done;
    (void)worker.wait_until(
        [&] { return ended_ && (outcome = join.finish_build(Wait::none())) == Outcome::failed; });
    return join.finish_build();
  }
};

TEST_P(JoinHotKeysEnd, cancel_is_seen_and_leaves_nothing) {
  open(small_rings());
  cancel_while([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, spec(JoinKind::left)));
    work(worker, w, *join);
    expect_error(join->status(), Code::query_cancelled, {"enough"});
    join.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::failed);
  });
}

TEST_P(JoinHotKeysEnd, close_is_seen_and_leaves_nothing) {
  open(small_rings());
  close_while([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Join> join = value_of(Join::make(worker, spec(JoinKind::left)));
    work(worker, w, *join);
    EXPECT_FALSE(join->status().ok());
  });
}

std::string name_of_phase(const testing::TestParamInfo<Phase>& info) {
  constexpr const char* kNames[] = {"listing", "probing", "waiting", "taking"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Each, JoinHotKeysEnd,
                         testing::Values(Phase::listing, Phase::probing, Phase::waiting,
                                         Phase::taking),
                         name_of_phase);

}  // namespace
}  // namespace faro::test
