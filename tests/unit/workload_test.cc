// The workload of simulation, soak, cases and benchmarks: plans are what their page says, rows follow from their place, and the oracles
// see each kind of damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lab/workload/integer_rows.h"
#include "lab/workload/plan.h"
#include "lab/workload/row_checker.h"
#include "lab/workload/row_generator.h"
#include "lab/workload/row_loops.h"

namespace faro::test {
namespace {

using workload::Chance;
using workload::destination_of;
using workload::QueryPlan;
using workload::RowChecker;
using workload::RowCodec;
using workload::RowGenerator;
using workload::RowSum;
using workload::Spread;
using workload::StagePlan;
using workload::transform;

using Row = std::vector<std::byte>;

QueryPlan draw(uint64_t seed) {
  QueryPlan plan;
  plan.seed = seed;
  plan.workers = {0, 2, 3, 5, 6};
  plan.stage_bytes = 8192;
  Chance chance(seed);
  draw_stages(chance, {.ring_bytes = 4096}, 1, plan);
  return plan;
}

StagePlan lengths_by_key() {
  return {
      .stage = 2, .least_bytes = 1, .most_bytes = 40, .senders = {0, 1}, .receivers = {0, 1, 2}};
}

Row row_of(const RowGenerator& rows, uint32_t sender, uint64_t number) {
  Row row(rows.length(sender, number));
  rows.fill(sender, number, row);
  return row;
}

/// The first rows of sender 0 for receiver 1.
std::vector<Row> first_rows(const RowGenerator& rows, size_t count, uint64_t& made) {
  std::vector<Row> all;
  made = 0;
  for (uint64_t at = rows.next_for(1, 0, 0); all.size() < count; at = rows.next_for(1, 0, at + 1)) {
    all.push_back(row_of(rows, 0, at));
    made = at + 1;
  }
  return all;
}

TEST(Workload, every_spread_and_shape_of_rows_and_sides_of_any_size_are_drawn) {
  std::set<Spread> spreads;
  std::set<size_t> stages, senders, receivers;
  std::set<uint32_t> widths, longest;
  bool in_other_order = false;
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    const QueryPlan plan = draw(seed);
    stages.insert(plan.stages.size());
    for (const StagePlan& stage : plan.stages) {
      spreads.insert(stage.spread);
      senders.insert(stage.senders.size());
      receivers.insert(stage.receivers.size());
      in_other_order |= !std::is_sorted(stage.receivers.begin(), stage.receivers.end());
      (stage.row_bytes != 0 ? widths : longest)
          .insert(stage.row_bytes != 0 ? stage.row_bytes : stage.most_bytes);
      for (const uint32_t worker : stage.senders)
        ASSERT_TRUE(std::binary_search(plan.workers.begin(), plan.workers.end(), worker));
    }
  }
  EXPECT_EQ(spreads.size(), 4u);
  for (auto* sizes : {&stages, &senders, &receivers})
    EXPECT_EQ(*sizes, (std::set<size_t>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(in_other_order);
  for (const uint32_t width : {1, 8, 13, 24, 100, 1000, 1023, 1100})
    EXPECT_TRUE(widths.contains(width)) << width;
  EXPECT_GT(*widths.rbegin(), 4096u);  // larger than a ring
  for (const uint32_t most : {60u, 1500u, 3 * 4096u}) EXPECT_TRUE(longest.contains(most)) << most;
  EXPECT_GT(longest.size(), 50u);
}

TEST(Workload, a_tight_plan_has_only_rows_with_lengths) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    QueryPlan plan;
    plan.workers = {0, 1};
    Chance chance(seed);
    draw_stages(chance, {.ring_bytes = 4096, .is_tight = true}, 0, plan);
    for (const StagePlan& stage : plan.stages) EXPECT_EQ(stage.row_bytes, 0u);
  }
}

TEST(Workload, rows_of_a_stage_stay_within_its_bytes_and_differ_by_sender) {
  std::set<uint64_t> numbers;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const QueryPlan plan = draw(seed);
    for (const StagePlan& stage : plan.stages) {
      for (const uint32_t sender : stage.senders) {
        const uint64_t rows = plan.rows(stage, sender);
        EXPECT_EQ(rows, plan.rows(stage, sender));
        EXPECT_LE(rows, plan.stage_bytes / 16);
        numbers.insert(rows);
      }
    }
  }
  EXPECT_TRUE(numbers.contains(0));
  EXPECT_GT(numbers.size(), 50u);
}

TEST(Workload, a_row_follows_from_each_part_of_its_place) {
  std::set<Row> rows;
  for (const uint64_t seed : {1, 2}) {
    for (const uint32_t query : {0, 1}) {
      for (const uint32_t stage : {0, 1}) {
        StagePlan plan;
        plan.query = query;
        plan.stage = stage;
        plan.row_bytes = 24;
        const RowGenerator generator(seed, plan, 3);
        for (const uint32_t sender : {0, 1}) {
          for (const uint64_t number : {0, 1}) {
            rows.insert(row_of(generator, sender, number));
            EXPECT_EQ(row_of(generator, sender, number),
                      row_of(RowGenerator(seed, plan, 3), sender, number));
          }
        }
      }
    }
  }
  EXPECT_EQ(rows.size(), 32u);
}

TEST(Workload, a_receiver_waits_for_exactly_the_rows_that_go_to_it) {
  for (const Spread spread :
       {Spread::by_key, Spread::one_key, Spread::multicast, Spread::broadcast}) {
    StagePlan plan = lengths_by_key();
    plan.spread = spread;
    const RowGenerator rows(7, plan, 0);
    std::vector<uint32_t> to;
    for (uint32_t receiver = 0; receiver < 3; ++receiver) {
      uint64_t next = rows.next_for(receiver, 0, 0);
      for (uint64_t number = 0; number < 200; ++number) {
        rows.destinations(0, number, to);
        ASSERT_FALSE(to.empty());
        const bool is_for = std::find(to.begin(), to.end(), receiver) != to.end();
        EXPECT_EQ(is_for, number == next);
        if (is_for) next = rows.next_for(receiver, 0, number + 1);
      }
    }
  }
}

class Oracle : public testing::Test {
 protected:
  const RowGenerator rows{7, lengths_by_key(), 0};
  RowChecker checker{rows, 1};
  uint64_t made = 0;
  std::vector<Row> good = first_rows(rows, 10, made);

  /// The first complaint about rows of sender 0, or about their end.
  std::string complaint(const std::vector<Row>& came) {
    for (const Row& row : came) {
      if (std::string wrong = checker.check(0, row); !wrong.empty()) return wrong;
    }
    return checker.check_end(0, made);
  }
};

TEST_F(Oracle, is_content_with_all_rows_in_order) { EXPECT_EQ(complaint(good), ""); }

TEST_F(Oracle, sees_a_row_that_is_missing_at_the_end) {
  good.pop_back();
  EXPECT_NE(complaint(good).find("the stream ends before row"), std::string::npos);
}

TEST_F(Oracle, sees_a_row_that_is_missing_in_the_middle) {
  good.erase(good.begin() + 4);
  EXPECT_NE(complaint(good), "");
}

TEST_F(Oracle, sees_a_row_that_comes_twice) {
  good.insert(good.begin() + 4, good[4]);
  EXPECT_NE(complaint(good), "");
}

TEST_F(Oracle, sees_rows_out_of_order) {
  std::swap(good[2], good[3]);
  EXPECT_NE(complaint(good), "");
}

TEST_F(Oracle, sees_a_byte_that_differs) {
  good[5].back() ^= std::byte{1};
  EXPECT_NE(complaint(good).find("has other bytes"), std::string::npos);
}

TEST_F(Oracle, sees_a_row_that_is_cut) {
  good[5].pop_back();
  EXPECT_NE(complaint(good).find("bytes, not"), std::string::npos);
}

TEST_F(Oracle, sees_a_row_more_than_its_sender_made) {
  ASSERT_EQ(complaint(good), "");
  const uint64_t fewer = made - 1;
  EXPECT_NE(checker.check_number(0, fewer), "");
  EXPECT_NE(checker.check_end(0, fewer), "");
}

TEST_F(Oracle, sees_an_end_before_the_sender_has_finished) {
  EXPECT_NE(checker.check_end(0, std::nullopt), "");
}

TEST_F(Oracle, sees_rows_of_who_does_not_send) {
  EXPECT_NE(checker.check(2, good[0]).find("no sender"), std::string::npos);
}

TEST_F(Oracle, sees_a_row_that_is_for_another) {
  StagePlan plan = lengths_by_key();
  plan.spread = Spread::one_key;
  const RowGenerator one_key(7, plan, 0);
  uint32_t complaints = 0;
  for (uint32_t receiver = 0; receiver < 3; ++receiver)
    complaints += !RowChecker(one_key, receiver).check(0, row_of(one_key, 0, 0)).empty();
  EXPECT_EQ(complaints, 2u);
}

TEST(IntegerRows, transform_is_injective_and_moves_most_rows) {
  std::set<uint64_t> seen;
  uint64_t moved = 0;
  constexpr uint64_t kRows = 100'000;
  for (uint64_t n = 0; n < kRows; ++n) {
    EXPECT_TRUE(seen.insert(transform(n)).second) << n;
    if (destination_of<FinalizerHash>(n, 4) != destination_of<FinalizerHash>(transform(n), 4)) {
      ++moved;
    }
  }
  EXPECT_GT(moved, kRows * 7 / 10);
}

template <class Hash>
void expect_even_destinations() {
  std::vector<uint64_t> counts(7);
  constexpr uint64_t kRows = 700'000;
  for (uint64_t n = 0; n < kRows; ++n) ++counts[destination_of<Hash>(n, 7)];
  for (uint64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 100'000, 2'000);
}

TEST(IntegerRows, both_hashes_spread_rows_evenly) {
  expect_even_destinations<FinalizerHash>();
  expect_even_destinations<MultiplicativeHash>();
}

template <uint32_t kRowBytes>
void expect_damage_is_found() {
  std::vector<char> row(kRowBytes);
  for (uint64_t n : {uint64_t{0}, uint64_t{12345}, UINT64_MAX}) {
    RowCodec<kRowBytes>::write(row.data(), n);
    uint64_t damage = 0;
    EXPECT_EQ(RowCodec<kRowBytes>::read(row.data(), damage), n);
    EXPECT_EQ(damage, 0u);
    for (uint32_t at = 8; at < kRowBytes; ++at) {
      row[at] = static_cast<char>(row[at] ^ 0x10);
      damage = 0;
      (void)RowCodec<kRowBytes>::read(row.data(), damage);
      EXPECT_NE(damage, 0u) << "byte " << at << " of " << kRowBytes;
      row[at] = static_cast<char>(row[at] ^ 0x10);
    }
  }
}

TEST(IntegerRows, finds_every_damaged_byte_behind_n) {
  expect_damage_is_found<8>();
  expect_damage_is_found<16>();
  expect_damage_is_found<24>();
  expect_damage_is_found<32>();
  expect_damage_is_found<64>();
  expect_damage_is_found<100>();
  expect_damage_is_found<128>();
}

TEST(IntegerRows, writes_nothing_behind_the_row) {
  std::vector<char> memory(101, 'x');
  RowCodec<100>::write(memory.data(), 7);
  EXPECT_EQ(memory[100], 'x');
}

TEST(IntegerRows, large_rows_with_n_at_both_ends_show_that_one_of_them_is_damaged) {
  std::vector<std::byte> row(1000);
  workload::EndsCodec::write(row, 12345);
  uint64_t damage = 0;
  EXPECT_EQ(workload::EndsCodec::read(row, damage), 12345u);
  EXPECT_EQ(damage, 0u);
  for (const size_t at : {size_t{0}, size_t{7}, row.size() - 8, row.size() - 1}) {
    row[at] ^= std::byte{1};
    damage = 0;
    (void)workload::EndsCodec::read(row, damage);
    EXPECT_NE(damage, 0u) << at;
    row[at] ^= std::byte{1};
  }
}

TEST(IntegerRows, parts_of_a_range_cover_it_once) {
  constexpr workload::IntegerRange kRange{10, 10 + 1001};
  for (const uint64_t count : {1u, 4u, 7u, 1001u, 2000u}) {
    uint64_t next = kRange.begin;
    for (uint64_t i = 0; i < count; ++i) {
      const workload::IntegerRange part = kRange.part(i, count);
      EXPECT_EQ(part.begin, next);
      EXPECT_LE(part.size(), kRange.size() / count + 1);
      next = part.end;
    }
    EXPECT_EQ(next, kRange.end);
  }
}

/// Loops over many rows do what the codec does with one.
template <uint32_t kRowBytes>
void expect_loops_agree() {
  using Loops = workload::RowLoops<kRowBytes>;
  constexpr size_t kRows = 1000;
  std::vector<char> rows(kRows * kRowBytes), next(kRows * kRowBytes);
  Loops::generate(7, kRows, rows.data());
  uint64_t damage = 0;
  for (size_t i = 0; i < kRows; ++i)
    EXPECT_EQ(RowCodec<kRowBytes>::read(rows.data() + i * kRowBytes, damage), 7 + i);
  Loops::transform(rows.data(), kRows, next.data(), damage);
  EXPECT_EQ(damage, 0u);
  RowSum expected;
  for (uint64_t n = 7; n < 7 + kRows; ++n) expected.add(transform(n));
  EXPECT_EQ(Loops::sum(next.data(), kRows).totals(), expected.totals());
  EXPECT_EQ(workload::sum_rows<kRowBytes>(next.data(), kRows).totals(), expected.totals());
  if (kRowBytes > 8) next[kRowBytes * kRows / 2 + 8] ^= 1;
  EXPECT_EQ(Loops::sum(next.data(), kRows).totals() == expected.totals(), kRowBytes == 8);
}

TEST(IntegerRows, loops_over_many_rows_agree_with_the_codec) {
  expect_loops_agree<8>();
  expect_loops_agree<16>();
  expect_loops_agree<24>();
  expect_loops_agree<100>();
  expect_loops_agree<128>();
}

TEST(RowSum, agrees_with_the_expected_totals_in_any_order_and_by_parts) {
  constexpr uint64_t kRows = 1000;
  const workload::Totals expected = workload::totals_of(kRows, transform);
  RowSum forwards, first, second;
  for (uint64_t n = 0; n < kRows; ++n) forwards.add(transform(n));
  for (uint64_t n = kRows; n-- > 0;) (n % 3 == 0 ? first : second).add(transform(n));
  EXPECT_EQ(forwards.totals(), expected);
  workload::Totals parts = first.totals();
  parts += second.totals();
  EXPECT_EQ(parts, expected);
  first += second;
  EXPECT_EQ(first.totals(), expected);
}

TEST(RowSum, notices_a_swapped_a_doubled_and_a_damaged_row) {
  constexpr uint64_t kRows = 1000;
  const workload::Totals expected = workload::totals_of(kRows, transform);
  auto run = [&](auto change, uint64_t damage) {
    RowSum sum;
    for (uint64_t n = 0; n < kRows; ++n) sum.add(transform(change(n)));
    sum.damage |= damage;
    EXPECT_EQ(sum.count, kRows);
    return sum.totals();
  };
  EXPECT_EQ(run([](uint64_t n) { return n; }, 0), expected);
  EXPECT_NE(run([](uint64_t n) { return n == 7 ? 8 : n; }, 0), expected);
  // Two wrong rows whose plain sum would be right.
  EXPECT_NE(run([](uint64_t n) { return n == 10 ? 8 : n == 20 ? 22 : n; }, 0), expected);
  EXPECT_NE(run([](uint64_t n) { return n; }, 0x10), expected);
}

}  // namespace
}  // namespace faro::test
