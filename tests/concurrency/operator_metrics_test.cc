// What a session shows of its operators: of each that lives what it has done, and of each kind what all have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "counters/counter_view.h"
#include "counters/prometheus_text.h"
#include "faro/aggregate.h"
#include "faro/join.h"
#include "support/operator_test.h"

namespace faro::test {
namespace {

struct Count {
  using Row = uint64_t;
  using Key = uint64_t;
  using State = uint64_t;
  uint64_t key(const uint64_t& row) const { return row; }
  void add(uint64_t& count, const uint64_t&) const { ++count; }
  void merge(uint64_t& count, const uint64_t& other) const { count += other; }
};
using Counting = Aggregation<Count>;

struct Same {
  using Build = uint64_t;
  using Probe = uint64_t;
  using Key = uint64_t;
  uint64_t build_key(const uint64_t& row) const { return row; }
  uint64_t probe_key(const uint64_t& row) const { return row; }
};
using Joining = RadixJoin<Same>;

std::vector<uint64_t> numbers(uint64_t count, uint64_t below) {
  std::vector<uint64_t> all;
  for (uint64_t number = 0; number < count; ++number) all.push_back(number % below);
  return all;
}

class OperatorMetricsTest : public OperatorTest {
 protected:
  Session& session_of(uint32_t worker) { return (*cluster_)[worker / 2]; }
  std::vector<OperatorMetrics> shown(uint32_t worker) {
    std::vector<OperatorMetrics> all = session_of(worker).metrics().operators;
    std::erase_if(all, [&](const OperatorMetrics& one) { return one.worker != worker; });
    return all;
  }
  OperatorTotals total(uint32_t worker, OperatorKind kind) {
    for (const OperatorTotals& each : session_of(worker).metrics().operator_totals) {
      if (each.worker == worker && each.kind == kind) return each;
    }
    ADD_FAILURE() << "no totals of worker " << worker;
    return {};
  }
  void end_query(uint32_t w) {
    Worker& worker = cluster_->worker(w);
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  }
  template <typename Operator, typename Result>
  static uint64_t take_all(Operator& from, std::span<const Result> some = {}) {
    uint64_t count = 0;
    Outcome outcome;
    while ((outcome = from.next(some)) == Outcome::done) count += some.size();
    EXPECT_EQ(outcome, Outcome::end_of_stream) << from.status().to_string();
    return count;
  }
};

TEST_F(OperatorMetricsTest, an_aggregation_is_shown_while_it_lives_and_is_in_the_totals_for_good) {
  constexpr uint64_t kRows = 10'000, kKeys = 7;
  open();
  cluster_->run_workers([&](uint32_t w) {
    uint64_t states = 0, groups = 0;
    for (uint32_t stage = 0; stage < 2; ++stage) {
      auto made =
          value_of(Counting::make(cluster_->worker(w), {query_, stage, {}, {}, uint32_t{4096}}));
      ASSERT_EQ(shown(w).size(), 1u);
      EXPECT_EQ(shown(w)[0].rows_in, 0u) << "nothing of the one before is left";
      EXPECT_EQ(made->add(numbers(kRows, kKeys)).outcome, Outcome::done);
      const std::vector<OperatorMetrics> now = shown(w);
      ASSERT_EQ(now.size(), 1u);
      EXPECT_EQ(now[0].query, query_);
      EXPECT_EQ(now[0].stage, stage);
      EXPECT_EQ(now[0].kind, OperatorKind::aggregation);
      EXPECT_EQ(now[0].rows_in, kRows);
      EXPECT_EQ(now[0].rows_out, 0u);
      EXPECT_EQ(now[0].table_states, 4096u);
      EXPECT_GT(now[0].held_bytes, 0u);
      EXPECT_GE(now[0].peak_bytes, now[0].held_bytes);
      EXPECT_EQ(total(w, OperatorKind::aggregation).held_bytes, now[0].held_bytes);
      EXPECT_EQ(made->finish(), Outcome::done);
      EXPECT_EQ(shown(w)[0].states_sent, kKeys) << "those of its table";
      groups += take_all<Counting, Counting::Group>(*made);
      states += made->metrics().states_received;
      EXPECT_EQ(shown(w)[0].rows_out, made->metrics().groups);
      EXPECT_EQ(shown(w)[0].rows_arrived, made->metrics().states_received);
    }
    EXPECT_EQ(shown(w).size(), 0u);
    const OperatorTotals all = total(w, OperatorKind::aggregation);
    EXPECT_EQ(all.rows_in, 2 * kRows);
    EXPECT_EQ(all.states_sent, 2 * kKeys);
    EXPECT_EQ(all.rows_arrived, states);
    EXPECT_EQ(all.rows_out, groups);
    EXPECT_EQ(all.held_bytes, 0u);
    EXPECT_EQ(all.peak_bytes, 0u);
    EXPECT_EQ(all.table_states, 0u);
    EXPECT_EQ(total(w, OperatorKind::join).rows_in, 0u);
    end_query(w);
  });
}

TEST_F(OperatorMetricsTest, a_join_tells_rows_of_both_sides_and_pairs) {
  open();
  cluster_->run_workers([&](uint32_t w) {
    auto made = value_of(Joining::make(cluster_->worker(w), {query_, 4}));
    EXPECT_EQ(made->build(numbers(w == 0 ? 100 : 0, 100)).outcome, Outcome::done);
    EXPECT_EQ(made->finish_build(), Outcome::done);
    EXPECT_EQ(made->probe(numbers(300, 200)).outcome, Outcome::done);
    ASSERT_EQ(shown(w).size(), 1u);
    EXPECT_EQ(shown(w)[0].kind, OperatorKind::join);
    EXPECT_EQ(shown(w)[0].stage, 4u);
    EXPECT_EQ(shown(w)[0].rows_in, w == 0 ? 400u : 300u);
    EXPECT_EQ(made->finish_probe(), Outcome::done);
    const uint64_t pairs = take_all<Joining, Joining::Pair>(*made);
    const JoinMetrics told = made->metrics();
    EXPECT_EQ(shown(w)[0].rows_out, pairs);
    EXPECT_EQ(shown(w)[0].rows_arrived, told.build_rows_received + told.probe_rows_received);
    made.reset();
    EXPECT_EQ(shown(w).size(), 0u);
    EXPECT_EQ(total(w, OperatorKind::join).rows_out, pairs);
    EXPECT_EQ(total(w, OperatorKind::aggregation).rows_in, 0u);
    end_query(w);
  });
  uint64_t pairs = 0;
  for (uint32_t w = 0; w < kWorkers; ++w) pairs += total(w, OperatorKind::join).rows_out;
  EXPECT_EQ(pairs, 4u * 200) << "of 300 probe rows of a worker 200 have a key below 100";
}

TEST_F(OperatorMetricsTest, a_join_tells_of_probe_rows_that_were_joined_where_they_were_added) {
  constexpr uint64_t kKey = 7;
  const uint32_t owner = partition(FinalizerHash{}(kKey), kWorkers);
  open();
  cluster_->run_workers([&](uint32_t w) {
    auto made = value_of(Joining::make(cluster_->worker(w), {query_, 0}));
    EXPECT_EQ(made->build(std::vector<uint64_t>(w == owner ? 1 : 0, kKey)).outcome, Outcome::done);
    EXPECT_EQ(made->finish_build(), Outcome::done);
    const std::vector<uint64_t> rows(1000, kKey);
    while (w != owner && made->metrics().probe_rows_kept == 0)
      ASSERT_EQ(made->probe(rows).outcome, Outcome::done) << made->status().to_string();
    EXPECT_EQ(made->finish_probe(), Outcome::done);
    (void)take_all<Joining, Joining::Pair>(*made);
    const JoinMetrics told = made->metrics();
    EXPECT_EQ(shown(w)[0].rows_arrived,
              told.build_rows_received + told.probe_rows_received + told.probe_rows_kept);
    made.reset();
    end_query(w);
  });
  uint64_t in = 0, arrived = 0;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    in += total(w, OperatorKind::join).rows_in;
    arrived += total(w, OperatorKind::join).rows_arrived;
  }
  EXPECT_EQ(in, arrived) << "each row is joined at one worker";
}

TEST_F(OperatorMetricsTest, a_join_with_hot_keys_holds_memory_for_finding_and_knowing_them) {
  constexpr uint64_t kLeast = uint64_t{60} << 10, kMost = uint64_t{90} << 10;
  open();
  cluster_->run_workers([&](uint32_t w) {
    std::vector<std::unique_ptr<Joining>> joins;
    for (const bool hot_keys : {false, true}) {
      JoinSpec spec{query_, hot_keys ? 4u : 0u};
      spec.hot_keys = hot_keys;
      joins.push_back(value_of(Joining::make(cluster_->worker(w), spec)));
    }
    for (const auto& join : joins) EXPECT_EQ(join->finish_build(), Outcome::done);
    std::vector<OperatorMetrics> now = shown(w);
    std::ranges::sort(now, {}, &OperatorMetrics::stage);
    ASSERT_EQ(now.size(), 2u);
    EXPECT_GE(now[1].held_bytes, now[0].held_bytes + kLeast);
    EXPECT_LE(now[1].held_bytes, now[0].held_bytes + kMost);
    for (const auto& join : joins) {
      EXPECT_EQ(join->finish_probe(), Outcome::done);
      (void)take_all<Joining, Joining::Pair>(*join);
    }
    joins.clear();
    EXPECT_EQ(total(w, OperatorKind::join).held_bytes, 0u);
    end_query(w);
  });
}

TEST_F(OperatorMetricsTest, what_is_spilled_is_counted_by_partition_and_bytes) {
  open({{"operator.memory_bytes", "2 MiB"}, {"overflow.memory_bytes", "1 MiB"}});
  cluster_->run_workers([&](uint32_t w) {
    auto made = value_of(Counting::make(cluster_->worker(w), {query_, 0}));
    std::vector<uint64_t> rows;
    for (uint64_t row = 0; row < 150'000; ++row) rows.push_back(row * kWorkers + w);
    EXPECT_EQ(made->add(rows).outcome, Outcome::done);
    EXPECT_EQ(made->finish(), Outcome::done);
    (void)take_all<Counting, Counting::Group>(*made);
    const std::vector<OperatorMetrics> now = shown(w);
    ASSERT_EQ(now.size(), 1u);
    EXPECT_GT(now[0].spilled_bytes, uint64_t{1} << 20);
    EXPECT_EQ(now[0].spilled_bytes, made->metrics().spilled_bytes);
    EXPECT_GT(now[0].partitions_spilled, 1u);
    EXPECT_LE(now[0].peak_bytes, uint64_t{2} << 20);
    made.reset();
    EXPECT_EQ(total(w, OperatorKind::aggregation).partitions_spilled, now[0].partitions_spilled);
    end_query(w);
  });
}

TEST_F(OperatorMetricsTest, one_for_which_there_is_no_room_is_in_the_totals) {
  constexpr uint32_t kMade = 18, kShown = 16;
  open();
  cluster_->run_workers([&](uint32_t w) {
    std::vector<std::unique_ptr<Counting>> all;
    for (uint32_t stage = 0; stage < kMade; ++stage) {
      all.push_back(value_of(Counting::make(cluster_->worker(w), {query_, stage})));
      EXPECT_EQ(all.back()->add(numbers(10, 10)).outcome, Outcome::done);
    }
    EXPECT_EQ(shown(w).size(), kShown);
    EXPECT_EQ(total(w, OperatorKind::aggregation).rows_in, kMade * 10u);
    for (const std::unique_ptr<Counting>& each : all) EXPECT_EQ(each->finish(), Outcome::done);
    for (const std::unique_ptr<Counting>& each : all)
      (void)take_all<Counting, Counting::Group>(*each);
    all.front().reset();
    EXPECT_EQ(shown(w).size(), kShown - 1);
    all[0] = value_of(Counting::make(cluster_->worker(w), {query_, kMade}));
    ASSERT_EQ(shown(w).size(), kShown) << "its room is taken again";
    EXPECT_EQ(all[0]->finish(), Outcome::done);
    (void)take_all<Counting, Counting::Group>(*all[0]);
    all.clear();
    EXPECT_EQ(shown(w).size(), 0u);
    EXPECT_EQ(total(w, OperatorKind::aggregation).rows_in, kMade * 10u);
    end_query(w);
  });
}

TEST_F(OperatorMetricsTest, one_that_fails_or_is_destroyed_early_holds_nothing) {
  open();
  cluster_->run_workers([&](uint32_t w) {
    auto made = value_of(Counting::make(cluster_->worker(w), {query_, 0}));
    const Outcome added = made->add(numbers(10'000, 7)).outcome;
    EXPECT_TRUE(added == Outcome::done || added == Outcome::failed);
    ++there_;
    wait_for_all();
    made.reset();  // before its end: the query fails
    EXPECT_EQ(shown(w).size(), 0u);
    EXPECT_EQ(total(w, OperatorKind::aggregation).held_bytes, 0u);
    EXPECT_EQ(cluster_->worker(w).end_query(query_), Outcome::failed);
  });
}

}  // namespace
}  // namespace faro::test
