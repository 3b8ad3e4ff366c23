// Aggregation over real sessions: every group comes out once with the state that an oracle has, whatever the table, the memory and
// the shape of the keys; and every way in which it ends.
#include "faro/aggregate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/operator_test.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;

struct Sale {
  uint64_t shop;
  uint64_t amount;
};
struct Totals {
  uint64_t count;
  uint64_t sum;
  uint64_t most;
};
struct Sales {
  using Row = Sale;
  using Key = uint64_t;
  using State = Totals;
  uint64_t key(const Sale& row) const { return row.shop; }
  void add(Totals& state, const Sale& row) const {
    ++state.count;
    state.sum += row.amount;
    state.most = std::max(state.most, row.amount);
  }
  void merge(Totals& state, const Totals& other) const {
    state.count += other.count;
    state.sum += other.sum;
    state.most = std::max(state.most, other.most);
  }
};
using Aggregated = Aggregation<Sales>;
using Groups = std::map<uint64_t, Totals>;

/// The rows of a worker.
using Keys = uint64_t (*)(uint32_t worker, uint64_t row);
uint64_t drawn(uint32_t worker, uint64_t row) { return FinalizerHash{}(worker * 1'000'003 + row); }

class AggregationTest : public OperatorTest {
 protected:
  std::unique_ptr<Aggregated> make(Worker& worker, uint32_t stage = 0,
                                   std::optional<uint32_t> table = {}) {
    return value_of(Aggregated::make(worker, {query_, stage, {}, {}, table}));
  }
  static Sale sale(uint32_t worker, uint64_t row, Keys keys) {
    return {keys(worker, row), drawn(worker, row) % 1000};
  }
  static void add_all(Aggregated& into, uint32_t worker, uint64_t rows, Keys keys) {
    std::vector<Sale> some;
    for (uint64_t row = 0; row < rows;) {
      some.clear();
      for (; row < rows && some.size() < 3000; ++row) some.push_back(sale(worker, row, keys));
      const Sent sent = into.add(some);
      ASSERT_EQ(sent.outcome, Outcome::done) << into.status().to_string();
      ASSERT_EQ(sent.rows, some.size());
    }
  }
  /// Takes all groups; each has to come once, at the worker to which partition() gives its key.
  static void take_all(Aggregated& from, uint32_t worker, Groups& groups) {
    std::span<const Aggregated::Group> some;
    Outcome outcome;
    while ((outcome = from.next(some)) == Outcome::done) {
      EXPECT_FALSE(some.empty());
      for (const Aggregated::Group& group : some) {
        EXPECT_EQ(partition(FinalizerHash{}(group.key), kWorkers), worker);
        EXPECT_TRUE(groups.emplace(group.key, group.state).second) << group.key << " comes twice";
      }
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream) << from.status().to_string();
  }
  /// Aggregates, and compares with an oracle; returns the metrics of all workers.
  std::vector<AggregationMetrics> aggregate(uint64_t rows_of_worker, Keys keys,
                                            std::optional<uint32_t> table = {}) {
    std::vector<AggregationMetrics> metrics(kWorkers);
    std::vector<Groups> groups(kWorkers);
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      std::unique_ptr<Aggregated> aggregated = make(worker, 0, table);
      add_all(*aggregated, w, rows_of_worker, keys);
      EXPECT_EQ(aggregated->finish(), Outcome::done) << aggregated->status().to_string();
      take_all(*aggregated, w, groups[w]);
      metrics[w] = aggregated->metrics();
      EXPECT_EQ(metrics[w].rows, rows_of_worker);
      aggregated.reset();
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
    });
    compare(groups, rows_of_worker, keys);
    return metrics;
  }
  static void compare(const std::vector<Groups>& groups, uint64_t rows_of_worker, Keys keys) {
    const Sales sales;
    Groups expected;
    for (uint32_t w = 0; w < kWorkers; ++w) {
      for (uint64_t row = 0; row < rows_of_worker; ++row) {
        const Sale one = sale(w, row, keys);
        sales.add(expected[one.shop], one);
      }
    }
    size_t count = 0;
    for (const Groups& of_worker : groups) {
      count += of_worker.size();
      for (const auto& [key, state] : of_worker) {
        const auto found = expected.find(key);
        ASSERT_NE(found, expected.end()) << key;
        EXPECT_EQ(std::memcmp(&found->second, &state, sizeof state), 0) << key;
      }
    }
    EXPECT_EQ(count, expected.size());
  }
};

uint64_t few(uint32_t, uint64_t row) { return row % 16; }
uint64_t one(uint32_t, uint64_t) { return 7; }
uint64_t all_different(uint32_t worker, uint64_t row) { return row * kWorkers + worker; }
uint64_t many(uint32_t worker, uint64_t row) { return drawn(worker, row) % 50'000; }
uint64_t sorted(uint32_t, uint64_t row) { return row / 10; }
uint64_t frequent(uint32_t worker, uint64_t row) {
  return row % 2 == 0 ? 3 : drawn(worker, row) % 100'000;
}
uint64_t changing(uint32_t worker, uint64_t row) {
  return row < 60'000 ? drawn(worker, row) : row % 100;
}

TEST_F(AggregationTest, each_group_comes_once_whatever_the_keys) {
  for (const Keys keys : {few, one, all_different, many, sorted, frequent, changing}) {
    open();
    aggregate(120'000, keys);
    TearDown();
    cluster_.reset();
  }
}

TEST_F(AggregationTest, each_group_comes_once_whatever_the_table) {
  for (const uint32_t table : {0u, 4096u, 65'536u}) {
    open();
    const std::vector<AggregationMetrics> metrics = aggregate(100'000, many, table);
    for (const AggregationMetrics& of_worker : metrics) {
      EXPECT_EQ(of_worker.most_table_states, table);
      EXPECT_EQ(of_worker.rows_passed, table == 0 ? 100'000u : 0u);
    }
    TearDown();
    cluster_.reset();
  }
}

TEST_F(AggregationTest, without_a_row_there_is_no_group) {
  open();
  aggregate(0, few);
}

TEST_F(AggregationTest, groups_that_do_not_fit_the_memory_are_spilled_and_merged) {
  // The reserves of two workers, and nothing else.
  open({{"operator.memory_bytes", "2 MiB"}, {"overflow.memory_bytes", "1 MiB"}});
  const std::vector<AggregationMetrics> metrics = aggregate(150'000, all_different);
  for (const AggregationMetrics& of_worker : metrics) {
    EXPECT_GT(of_worker.spilled_bytes, uint64_t{1} << 20);
    EXPECT_LE(of_worker.peak_bytes, uint64_t{2} << 20);
  }
}

// A state so wide that the reserve has room for 4096 of them, and not for twice as many.
struct Wide {
  uint64_t count;
  uint64_t sum[15];
};
struct WideSales : Sales {
  using State = Wide;
  void add(Wide& state, const Sale& row) const {
    ++state.count;
    for (uint64_t& sum : state.sum) sum += row.amount;
  }
  void merge(Wide& state, const Wide& other) const {
    state.count += other.count;
    for (size_t i = 0; i < std::size(state.sum); ++i) state.sum[i] += other.sum[i];
  }
};

TEST_F(AggregationTest, a_partition_with_more_groups_than_memory_is_split) {
  open({{"operator.memory_bytes", "3500 KiB"}});
  constexpr uint64_t kRows = 300'000;
  std::atomic<uint64_t> groups{0}, keys{0}, split{0};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    auto aggregated = value_of(Aggregation<WideSales>::make(worker, {query_}));
    for (uint64_t row = 0; row < kRows; ++row) {
      const Sale sale{row * kWorkers + w, 5};
      ASSERT_EQ(aggregated->add({&sale, 1}).outcome, Outcome::done);
    }
    EXPECT_EQ(aggregated->finish(), Outcome::done);
    std::span<const Aggregation<WideSales>::Group> some;
    while (aggregated->next(some) == Outcome::done) {
      groups += some.size();
      for (const auto& [key, state] : some) {
        keys += key;
        EXPECT_EQ(state.count, 1u);
        EXPECT_EQ(state.sum[14], 5u);
      }
    }
    split += aggregated->metrics().partitions_split;
    EXPECT_LE(aggregated->metrics().peak_bytes, uint64_t{3500} << 10);
    aggregated.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  EXPECT_EQ(groups, kWorkers * kRows);
  EXPECT_EQ(keys, kWorkers * kRows * (kWorkers * kRows - 1) / 2);
  EXPECT_GT(split, 0u);
}

TEST_F(AggregationTest, workers_that_only_add_do_not_wait_for_each_other) {
  open(small_rings());
  std::vector<std::unique_ptr<Aggregated>> all(kWorkers);
  std::vector<Groups> groups(kWorkers);
  std::atomic<uint32_t> added{0};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    all[w] = make(worker, 0, 0);  // each row is sent
    add_all(*all[w], w, 50'000, many);
    EXPECT_EQ(worker.metrics().frames_spilled, 0u) << "a wait takes in what comes";
    ++added;
    EXPECT_EQ(
        worker.wait_until([&] { return added == kWorkers; }, Wait::at_most(milliseconds(20'000))),
        Outcome::done);
    EXPECT_EQ(all[w]->finish(), Outcome::done);
    take_all(*all[w], w, groups[w]);
    all[w].reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done);
  });
  compare(groups, 50'000, many);
}

// A row of each of three aggregations is a group of the one before.
TEST_F(AggregationTest, operators_in_a_pipeline_do_not_spill_rows_of_each_other) {
  open(small_rings({{"drain.delay_us", "1"}}));
  std::atomic<uint64_t> count{0}, groups{0};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Aggregated> all[] = {make(worker, 0, 0), make(worker, 1, 0),
                                         make(worker, 2, 0)};
    add_all(*all[0], w, 30'000, all_different);
    EXPECT_EQ(all[0]->finish(), Outcome::done);
    for (uint32_t stage = 0; stage < 3; ++stage) {
      std::span<const Aggregated::Group> some;
      while (all[stage]->next(some) == Outcome::done) {
        std::vector<Sale> rows;
        for (const auto& [key, state] : some) {
          if (stage == 2) count += state.sum;
          rows.push_back({key / 3, stage == 0 ? 1 : state.sum});
        }
        groups += stage == 2 ? some.size() : 0;
        if (stage == 2) continue;
        EXPECT_EQ(all[stage + 1]->add(rows).outcome, Outcome::done);
      }
      if (stage == 2) break;
      EXPECT_EQ(all[stage + 1]->finish(), Outcome::done);
    }
    EXPECT_EQ(worker.metrics().frames_spilled, 0u);
    for (auto& each : all) each.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  EXPECT_EQ(count, 120'000u);
  EXPECT_EQ(groups, (120'000u / 3 + 2) / 3);
}

TEST_F(AggregationTest, rows_of_frequent_keys_meet_a_small_table_where_others_pass) {
  open();
  // Half of the rows are of one key.
  uint64_t passed = 0, sent = 0;
  for (const AggregationMetrics& of_worker : aggregate(200'000, [](uint32_t worker, uint64_t row) {
         return row % 2 == 0 ? uint64_t{3} : drawn(worker, row);
       })) {
    passed += of_worker.rows_passed;
    sent += of_worker.states_sent;
  }
  // Whether rows pass is a matter of speed; however that is, a group is about one state per worker and drain.
  EXPECT_LE(passed, 410'000u);
  EXPECT_LE(sent, 430'000u);
}

TEST_F(AggregationTest, a_worker_that_holds_a_batch_is_told_so) {
  open(small_rings());
  std::vector<Groups> groups(kWorkers);
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Aggregated> aggregated = make(worker, 0, 0);
    Shuffle other = value_of(worker.open_shuffle({query_, 1 + w, 8, {w}, {w}}));
    const uint64_t row = 1;
    ASSERT_EQ(other.sender<uint64_t>()->send(0, row), Outcome::done);
    ASSERT_EQ(other.sender()->finish(), Outcome::done);
    Batch held;
    ASSERT_EQ(other.receiver()->receive(held), Outcome::done);
    std::vector<Sale> rows;
    for (uint64_t i = 0; i < 20'000; ++i) rows.push_back(sale(w, i, many));
    const Sent sent = aggregated->add(rows);
    EXPECT_EQ(sent.outcome, Outcome::holding);
    EXPECT_LT(sent.rows, rows.size());
    EXPECT_EQ(worker.metrics().frames_out_overflow, 0u) << "nothing is spilled without bound";
    held.release();
    EXPECT_EQ(other.receiver()->receive(held), Outcome::end_of_stream);
    other.close();
    EXPECT_EQ(aggregated->add(std::span(rows).subspan(sent.rows)).outcome, Outcome::done);
    EXPECT_EQ(aggregated->finish(), Outcome::done);
    take_all(*aggregated, w, groups[w]);
    aggregated.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  compare(groups, 20'000, many);
}

TEST_F(AggregationTest, some_add_and_others_take) {
  open();
  std::atomic<uint64_t> count{0}, groups{0};
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    auto aggregated = value_of(Aggregated::make(worker, {query_, 0, {0, 1, 2}, {3}}));
    const Sale one = sale(w, 0, few);
    if (w < 3) {
      add_all(*aggregated, w, 10'000, few);
    } else {
      EXPECT_EQ(aggregated->add({&one, 1}).outcome, Outcome::failed);
      expect_error(aggregated->status(), Code::wrong_state, {"none of its senders"});
    }
    EXPECT_EQ(aggregated->finish(), Outcome::done);
    std::span<const Aggregated::Group> some;
    Outcome outcome;
    while ((outcome = aggregated->next(some)) == Outcome::done) {
      groups += some.size();
      for (const auto& group : some) count += group.state.count;
      EXPECT_EQ(w, 3u);
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream);
    aggregated.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  EXPECT_EQ(groups, 16u);
  EXPECT_EQ(count, 30'000u);
}

TEST_F(AggregationTest, wrong_use_is_refused_and_the_query_goes_on) {
  open();
  std::vector<Groups> groups(kWorkers);
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    expect_error(Aggregated::make(worker, {query_, 0, {}, {}, 5000}).status(),
                 Code::invalid_argument, {"table_states = 5000"});
    std::unique_ptr<Aggregated> aggregated = make(worker);
    add_all(*aggregated, w, 1000, few);
    std::span<const Aggregated::Group> some;
    EXPECT_EQ(aggregated->next(some), Outcome::failed);
    expect_error(aggregated->status(), Code::wrong_state, {"before", "finish"});
    EXPECT_EQ(aggregated->finish(), Outcome::done);
    EXPECT_EQ(aggregated->finish(), Outcome::done) << "once more";
    const Sale one = sale(w, 0, few);
    EXPECT_EQ(aggregated->add({&one, 1}).outcome, Outcome::failed);
    expect_error(aggregated->status(), Code::wrong_state, {"after finish"});
    take_all(*aggregated, w, groups[w]);
    EXPECT_EQ(aggregated->next(some), Outcome::end_of_stream) << "once more";
    aggregated.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  compare(groups, 1000, few);
}

// Its groups have as many bytes as those of Sales.
struct OtherSales : Sales {
  struct Key128 {
    uint64_t shop, day;
    bool operator==(const Key128&) const = default;
  };
  struct TwoTotals {
    uint64_t count, sum;
  };
  using Key = Key128;
  using State = TwoTotals;
  Key key(const Sale& row) const { return {row.shop, 0}; }
  void add(State& state, const Sale&) const { ++state.count; }
  void merge(State& state, const State& other) const { state.count += other.count; }
};
static_assert(sizeof(Aggregation<OtherSales>::Group) == sizeof(Aggregated::Group));

/// Takes no group of it.
template <typename Made>
void use_up(const Made& made) {
  if (!made.ok()) return;
  EXPECT_NE((*made)->finish(), Outcome::would_wait);
  std::span<const typename std::remove_cvref_t<decltype(**made)>::Group> some;
  EXPECT_NE((*made)->next(some), Outcome::done);
}

TEST_F(AggregationTest, workers_that_aggregate_something_else_fail_the_query_with_both_texts) {
  open();
  std::mutex mutex;
  std::string causes;
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    // Whoever comes late is told by make.
    if (w == 0) {
      const auto other = Aggregation<OtherSales>::make(worker, {query_});
      use_up(other);
    } else {
      const auto aggregated = Aggregated::make(worker, {query_});
      use_up(aggregated);
    }
    EXPECT_EQ(worker.end_query(query_), Outcome::failed);
    const std::lock_guard lock(mutex);
    causes += worker.status().to_string();
  });
  expect_contains(causes, "key of 8 bytes, state of 24");
  expect_contains(causes, "key of 16 bytes, state of 16");
}

// A state that fits no frame of a ring of 4 KiB.
struct Large {
  uint64_t count;
  uint64_t sums[250];
};
struct LargeSales : Sales {
  using State = Large;
  void add(Large& state, const Sale& row) const {
    ++state.count;
    for (uint64_t& sum : state.sums) sum += row.amount;
  }
  void merge(Large& state, const Large& other) const {
    state.count += other.count;
    for (size_t i = 0; i < std::size(state.sums); ++i) state.sums[i] += other.sums[i];
  }
};

TEST_F(AggregationTest, states_may_be_larger_than_frames) {
  for (const std::optional<uint32_t> table :
       {std::optional<uint32_t>(0), std::optional<uint32_t>()}) {
    open(small_rings());
    std::atomic<uint64_t> groups{0}, count{0}, sum{0}, expected{0};
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      auto aggregated = value_of(Aggregation<LargeSales>::make(worker, {query_, 0, {}, {}, table}));
      for (uint64_t row = 0; row < 500; ++row) {
        const Sale one = sale(w, row, few);
        expected += one.amount;
        ASSERT_EQ(aggregated->add({&one, 1}).outcome, Outcome::done);
      }
      EXPECT_EQ(aggregated->finish(), Outcome::done);
      std::span<const Aggregation<LargeSales>::Group> some;
      while (aggregated->next(some) == Outcome::done) {
        groups += some.size();
        for (const auto& group : some) {
          count += group.state.count;
          sum += group.state.sums[249];
        }
      }
      aggregated.reset();
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
    });
    EXPECT_EQ(groups, 16u);
    EXPECT_EQ(count, kWorkers * 500u);
    EXPECT_EQ(sum, expected);
    TearDown();
    cluster_.reset();
  }
}

/// Where a worker is when its query, or its session, ends.
enum class Phase { adding, finished, waiting, taking };

class AggregationEnds : public AggregationTest, public testing::WithParamInterface<Phase> {
 protected:
  /// Goes on in its phase until a call answers failed.
  void work(Worker& worker, uint32_t w, Aggregated& aggregated) {
    const Phase phase = GetParam();
    const auto reached = [&](Phase here) {
      if (phase == here) ++there_;
    };
    std::vector<Sale> rows;
    for (uint64_t i = 0; i < 50'000; ++i) rows.push_back(sale(w, i, all_different));
    Outcome outcome = aggregated.add(rows).outcome;
    reached(Phase::adding);
    while (phase == Phase::adding && outcome == Outcome::done)
      outcome = aggregated.add(rows).outcome;
    // One does not finish: the others wait for it.
    if (phase == Phase::waiting && w == 0) {
      reached(Phase::waiting);
      while (outcome == Outcome::done) outcome = aggregated.add({rows.data(), 1}).outcome;
    }
    if (outcome == Outcome::done) outcome = aggregated.finish();
    reached(Phase::finished);
    if (phase == Phase::finished && outcome == Outcome::done) {
      wait_for_the_end(worker, aggregated);
      outcome = aggregated.finish();
    }
    if (w != 0) reached(Phase::waiting);
    std::span<const Aggregated::Group> some;
    while (outcome == Outcome::done) {
      outcome = aggregated.next(some);
      reached(Phase::taking);
      if (phase == Phase::taking && outcome == Outcome::done) {
        // Groups are left until the query fails.
        wait_for_the_end(worker, aggregated);
      }
    }
    EXPECT_EQ(outcome, Outcome::failed);
  }
  /// Until this node knows of it, too.
  void wait_for_the_end(Worker& worker, Aggregated& aggregated) {
    (void)worker.wait_until(
        [&] { return ended_ && aggregated.finish(Wait::none()) == Outcome::failed; });
  }
};

TEST_P(AggregationEnds, cancel_is_seen_and_leaves_nothing) {
  open(small_rings({{"operator.memory_bytes", "4 MiB"}, {"overflow.memory_bytes", "1 MiB"}}));
  cancel_while([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Aggregated> aggregated = make(worker);
    work(worker, w, *aggregated);
    expect_error(aggregated->status(), Code::query_cancelled, {"enough"});
    aggregated.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::failed);
  });
}

TEST_P(AggregationEnds, close_is_seen_and_leaves_nothing) {
  open(small_rings({{"operator.memory_bytes", "4 MiB"}, {"overflow.memory_bytes", "1 MiB"}}));
  close_while([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Aggregated> aggregated = make(worker);
    work(worker, w, *aggregated);
    EXPECT_FALSE(aggregated->status().ok());
  });
}

std::string name_of_phase(const testing::TestParamInfo<Phase>& info) {
  constexpr const char* kNames[] = {"adding", "finished", "waiting", "taking"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Each, AggregationEnds,
                         testing::Values(Phase::adding, Phase::finished, Phase::waiting,
                                         Phase::taking),
                         name_of_phase);

TEST_F(AggregationTest, a_call_whose_time_has_passed_is_made_again_and_goes_on) {
  open();
  std::vector<Groups> groups(kWorkers);
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Aggregated> aggregated = make(worker, 0, 4096);
    add_all(*aggregated, w, 300'000, all_different);
    EXPECT_EQ(aggregated->finish(), Outcome::done);
    std::span<const Aggregated::Group> some;
    Outcome outcome = Outcome::done;
    uint64_t deadlines = 0;
    while (outcome != Outcome::end_of_stream) {
      outcome = aggregated->next(some, Wait::at_most(std::chrono::nanoseconds(1)));
      if (outcome == Outcome::deadline) ++deadlines;
      ASSERT_NE(outcome, Outcome::failed) << aggregated->status().to_string();
      for (const Aggregated::Group& group : some)
        EXPECT_TRUE(groups[w].emplace(group.key, group.state).second);
    }
    // A partition has some 4700 states, and the time is looked at after 4096.
    EXPECT_GT(deadlines, 64u);
    aggregated.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
  compare(groups, 300'000, all_different);
}

TEST_F(AggregationTest, that_is_destroyed_before_its_last_group_fails_the_query) {
  open();
  std::mutex mutex;
  std::string causes;
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Aggregated> aggregated = make(worker);
    add_all(*aggregated, w, 1000, few);
    EXPECT_EQ(aggregated->finish(), Outcome::done);
    std::span<const Aggregated::Group> some;
    Outcome outcome = aggregated->next(some);
    while (w != 1 && outcome == Outcome::done) outcome = aggregated->next(some);
    aggregated.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::failed);
    const std::lock_guard lock(mutex);
    causes += worker.status().to_string();
  });
  expect_contains(causes,
                  "worker 1 closed its aggregation of stage 0 before its end, without stop");
}

TEST_F(AggregationTest, a_receiver_that_stops_gets_no_group_and_the_query_goes_on) {
  open(small_rings());
  std::vector<Groups> groups(kWorkers);
  cluster_->run_workers([&](uint32_t w) {
    Worker& worker = cluster_->worker(w);
    std::unique_ptr<Aggregated> aggregated = make(worker, 0, 0);
    EXPECT_EQ(w == 2 ? aggregated->stop() : Outcome::done, Outcome::done);
    add_all(*aggregated, w, 20'000, many);
    EXPECT_EQ(aggregated->finish(), Outcome::done);
    take_all(*aggregated, w, groups[w]);
    EXPECT_EQ(groups[w].empty(), w == 2);
    aggregated.reset();
    EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
  });
}

// The states that nobody wants are not sent again when FINISH is.
TEST_F(AggregationTest, that_every_receiver_has_stopped_finishes_also_where_its_end_finds_no_room) {
  open(small_rings({{"ring.per_lane", "1"}}));
  const std::vector<uint32_t> senders{0};
  const std::vector<uint32_t> receivers{1};
  Worker& from = cluster_->worker(0);
  Worker& to = cluster_->worker(1);
  std::unique_ptr<Aggregated> added =
      value_of(Aggregated::make(from, {query_, 0, senders, receivers, 4096}));
  std::unique_ptr<Aggregated> taken =
      value_of(Aggregated::make(to, {query_, 0, senders, receivers}));
  const ShuffleSpec same_ring{query_, 1, sizeof(uint64_t), senders, receivers};
  Shuffle sent = value_of(from.open_shuffle(same_ring));
  Shuffle received = value_of(to.open_shuffle(same_ring));
  add_all(*added, 0, 1000, all_different);
  EXPECT_EQ(taken->stop(), Outcome::done);
  auto sender = value_of(sent.sender<uint64_t>());
  while (sender.send(0, 1, Wait::none()) == Outcome::done) {
  }
  for (int call = 0; call < 3; ++call)
    EXPECT_EQ(added->finish(Wait::none()), Outcome::would_wait) << added->status().to_string();
  Batch batch;
  const ShuffleReceiver receiver = value_of(received.receiver());
  while (receiver.receive(batch, Wait::none()) == Outcome::done) {
  }
  EXPECT_EQ(added->finish(Wait::none()), Outcome::done) << added->status().to_string();
  EXPECT_EQ(sender.finish(Wait::none()), Outcome::done);
  EXPECT_EQ(receiver.receive(batch), Outcome::end_of_stream);
  added.reset();
  taken.reset();
  sent.close();
  received.close();
  for (const uint32_t w : {0, 1}) cluster_->worker(w).release_ownership();
  cluster_->run_workers(
      [&](uint32_t w) { EXPECT_EQ(cluster_->worker(w).end_query(query_), Outcome::done); });
}

TEST_F(AggregationTest, a_call_of_another_thread_does_not_end_what_comes) {
  open();
  const std::vector<uint32_t> senders{0};
  const std::vector<uint32_t> receivers{1};
  std::unique_ptr<Aggregated> added =
      value_of(Aggregated::make(cluster_->worker(0), {query_, 0, senders, receivers}));
  std::unique_ptr<Aggregated> taken =
      value_of(Aggregated::make(cluster_->worker(1), {query_, 0, senders, receivers}));
  EXPECT_EQ(taken->finish(), Outcome::done);
  std::span<const Aggregated::Group> groups;
  std::thread([&] {
    EXPECT_EQ(taken->next(groups, Wait::none()), Outcome::would_wait);
    expect_error(taken->status(), Code::wrong_state, {"worker 1 belongs to another thread"});
    EXPECT_EQ(taken->next(groups), Outcome::failed);
  }).join();
  add_all(*added, 0, 1000, all_different);
  EXPECT_EQ(added->finish(), Outcome::done);
  size_t count = 0;
  Outcome outcome;
  while ((outcome = taken->next(groups)) == Outcome::done) count += groups.size();
  EXPECT_EQ(outcome, Outcome::end_of_stream);
  EXPECT_EQ(count, 1000u);
  added.reset();
  taken.reset();
  for (const uint32_t w : {0, 1}) cluster_->worker(w).release_ownership();
  cluster_->run_workers(
      [&](uint32_t w) { EXPECT_EQ(cluster_->worker(w).end_query(query_), Outcome::done); });
}

}  // namespace
}  // namespace faro::test
