// The workload of simulation, soak and cases: plans are what their page says, rows follow from their place, and the oracle sees
// each kind of damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lab/workload/plan.h"
#include "lab/workload/row_checker.h"
#include "lab/workload/row_generator.h"

namespace faro::test {
namespace {

using workload::Chance;
using workload::QueryPlan;
using workload::RowChecker;
using workload::RowGenerator;
using workload::Spread;
using workload::StagePlan;

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

}  // namespace
}  // namespace faro::test
