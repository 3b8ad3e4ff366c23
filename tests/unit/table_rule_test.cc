// TableRule: which table it chooses for what has been measured. HotKeys: whom the votes of a sample make frequent.
#include "faro/detail/table_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "faro/detail/hot_keys.h"
#include "faro/hash.h"

namespace faro::detail {
namespace {

using Full = TableRule::Full;

constexpr uint32_t kMost = 1 << 20;

/// How a table fills by rows that are evenly drawn from that many groups.
TableFilling even(double groups, uint32_t states) {
  const auto rows_to = [groups](double filled) {
    return static_cast<uint64_t>(-groups * std::log1p(-filled / groups) + 0.5);
  };
  return {rows_to(states), rows_to(states / 2.0), rows_to(states / 4.0)};
}
/// How it fills if each group comes that many times in a row.
TableFilling runs(uint64_t length, uint64_t states) {
  return {states * length, states * length / 2, states * length / 4};
}

/// A rule that knows what passing costs: 2 ns to send, 3 to take in, 10 to merge.
TableRule measured(double updating_ns) {
  TableRule rule(kMost, {});
  rule.sent(1000, 2000);
  rule.taken(1000, 3000);
  rule.updated(1000, static_cast<uint64_t>(updating_ns * 1000));
  return rule;
}
/// Fills the table again and again, with updates that take so long, until the rule has settled.
uint32_t settled(TableRule& rule, double groups, double (*updating_ns)(uint32_t states)) {
  for (int step = 0; step < 40 && rule.states() != 0; ++step) {
    if (rule.states() > groups) return rule.states();
    rule.updated(1000, static_cast<uint64_t>(updating_ns(rule.states()) * 1000));
    (void)rule.full(even(groups, rule.states()), 0);
  }
  return rule.states();
}

TEST(TableRule, begins_with_the_least_table) {
  EXPECT_EQ(TableRule(kMost, {}).states(), TableRule::kLeastStates);
  EXPECT_EQ(TableRule(1, {}).states(), TableRule::kLeastStates);
}

TEST(TableRule, decides_nothing_before_it_knows_what_sending_costs) {
  TableRule rule(kMost, {});
  rule.updated(1000, 10'000);
  EXPECT_EQ(rule.full(even(1e9, 4096), 0), Full::is_sent);
  EXPECT_EQ(rule.states(), 4096u);
}

TEST(TableRule, keeps_a_fixed_size) {
  for (const uint32_t states : {0u, 4096u, 65'536u}) {
    TableRule rule(kMost, states);
    rule.sent(1000, 5000);
    EXPECT_EQ(rule.full(even(10'000, 4096), 0), Full::is_sent);
    EXPECT_FALSE(rule.passed(uint64_t{1} << 30));
    EXPECT_EQ(rule.states(), states);
  }
}

TEST(TableRule, lets_rows_pass_where_hardly_two_are_of_one_group) {
  TableRule rule = measured(8);
  EXPECT_EQ(rule.full(even(100e6, 4096), 0), Full::is_sent);
  EXPECT_EQ(rule.states(), 0u);
}

TEST(TableRule, grows_to_what_all_groups_need) {
  TableRule rule = measured(8);
  EXPECT_EQ(rule.full(even(40'000, 4096), 0), Full::grows);
  EXPECT_EQ(rule.states(), 16'384u) << "step by step";
  const auto cheap = [](uint32_t) { return 8.0; };
  EXPECT_EQ(settled(rule, 40'000, cheap), 65'536u);
  EXPECT_EQ(rule.most_used(), 65'536u);
}

TEST(TableRule, gives_a_growing_table_up_that_costs_more_than_passing) {
  TableRule rule = measured(8);
  // It leaves the caches.
  const auto dear = [](uint32_t states) { return states <= 16'384 ? 8.0 : 40.0; };
  EXPECT_EQ(settled(rule, 300'000, dear), 0u);
  // What has been measured once is known at the next sample.
  EXPECT_TRUE(rule.passed(uint64_t{1} << 20));
  EXPECT_EQ(rule.states(), TableRule::kLeastStates);
  (void)rule.full(even(300'000, 4096), 0);
  EXPECT_EQ(settled(rule, 300'000, dear), 0u);
}

TEST(TableRule, does_not_grow_for_sorted_rows_and_does_not_let_them_pass) {
  TableRule rule = measured(8);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(rule.full(runs(4, rule.states()), 0), Full::is_sent);
    EXPECT_EQ(rule.states(), TableRule::kLeastStates);
  }
}

TEST(TableRule, a_sample_notices_that_rows_have_changed) {
  TableRule rule = measured(8);
  (void)rule.full(even(100e6, 4096), 0);
  ASSERT_EQ(rule.states(), 0u);
  uint64_t rows = 0;
  while (!rule.passed(1024)) rows += 1024;
  EXPECT_LE(rows, uint64_t{64} << 10);
  EXPECT_EQ(rule.states(), TableRule::kLeastStates);
  // As long as samples agree they come less often, but they come.
  for (int i = 0; i < 10; ++i) {
    (void)rule.full(even(100e6, 4096), 0);
    rows = 0;
    while (!rule.passed(1024)) rows += 1024;
    EXPECT_LE(rows, uint64_t{256} << 10);
  }
  EXPECT_EQ(rule.full(even(5'000, 4096), 0), Full::grows);
}

TEST(TableRule, frequent_keys_make_passing_cheaper) {
  // Half of the rows find their group: a table costs 6 ns and saves 8 of 16.
  const TableFilling filling{8192, 4096, 2048};
  TableRule without = measured(6);
  EXPECT_EQ(without.full(filling, 0), Full::is_sent);
  EXPECT_NE(without.states(), 0u);
  TableRule with = measured(6);
  (void)with.full(filling, 0.5);
  EXPECT_EQ(with.states(), 0u);
}

TEST(TableRule, stays_below_what_memory_there_is) {
  TableRule rule = measured(8);
  EXPECT_EQ(rule.full(even(40'000, 4096), 0), Full::grows);
  EXPECT_EQ(rule.could_not_grow(), Full::grows);
  EXPECT_EQ(rule.states(), 8192u) << "half of it, perhaps";
  EXPECT_EQ(rule.could_not_grow(), Full::grows);
  EXPECT_EQ(rule.states(), 4096u);
  EXPECT_EQ(rule.full(even(40'000, 4096), 0), Full::is_sent);
  EXPECT_LE(rule.states(), 4096u);
}

TEST(TableRule, an_outlier_is_no_cost) {
  MeasuredCost cost;
  for (const double ns : {5.0, 5.0, 900.0, 5.0, 5.0}) cost.add(ns);
  EXPECT_EQ(cost.ns(), 5.0);
  cost.add(900);
  EXPECT_EQ(cost.ns(), 5.0) << "also if it is the last";
  for (int i = 0; i < 7; ++i) cost.add(9);
  EXPECT_EQ(cost.ns(), 9.0) << "it follows what has changed";
}

TEST(HotKeys, finds_those_that_have_most_rows) {
  HotKeys keys;
  const auto mixed = [](uint64_t key) { return FinalizerHash{}(key + 1); };
  for (uint64_t row = 0; row < 8192; ++row) keys.vote(mixed(row % 2 == 0 ? 7 : 1000 + row));
  EXPECT_FALSE(keys.any()) << "before it was decided";
  EXPECT_NEAR(keys.decide(), 0.5, 0.01);
  EXPECT_TRUE(keys.any());
  EXPECT_TRUE(keys.is_hot(mixed(7)));
  for (uint64_t row = 1; row < 8192; row += 2) EXPECT_FALSE(keys.is_hot(mixed(1000 + row)));
}

TEST(HotKeys, are_none_where_all_keys_are_as_frequent) {
  HotKeys keys;
  for (uint64_t row = 0; row < 8192; ++row) keys.vote(FinalizerHash{}(row));
  EXPECT_EQ(keys.decide(), 0.0);
  EXPECT_FALSE(keys.any());
}

TEST(HotKeys, are_forgotten_with_the_next_decision) {
  HotKeys keys;
  for (int i = 0; i < 100; ++i) keys.vote(42);
  EXPECT_EQ(keys.decide(), 1.0);
  EXPECT_TRUE(keys.is_hot(42));
  EXPECT_EQ(keys.decide(), 0.0);
  EXPECT_FALSE(keys.is_hot(42));
}

}  // namespace
}  // namespace faro::detail
