// What operators are made of: their share of operator.memory_bytes, and the store of rows by partition that spills.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "node/session_access.h"
#include "support/session_cluster.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using detail::OperatorPart;
using detail::PartitionReader;
using detail::PartitionStore;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

class PartitionStoreTest : public testing::Test {
 protected:
  void open(const SettingList& settings) {
    cluster_.emplace(1, settings);
    ASSERT_TRUE(is_ok(cluster_->status()));
    query_ = session().begin_query();
  }
  void TearDown() override {
    part_.reset();
    if (!cluster_) return;
    EXPECT_EQ(memory().used_bytes(), 0u);
    EXPECT_EQ(memory().spilled_in_memory(), 0u);
    EXPECT_EQ(overflow().memory_bytes(), 0u);
    EXPECT_EQ(overflow().file().used_bytes(), 0u);
  }

  Session& session() { return (*cluster_)[0]; }
  shuffle::OperatorMemory& memory() {
    return SessionAccess::core(session()).worker(0).context().operator_memory;
  }
  shuffle::Overflow& overflow() { return SessionAccess::core(session()).overflow(); }
  Result<std::unique_ptr<OperatorPart>> make(uint32_t stage = 0, uint64_t reserve = 0) {
    std::vector<OperatorPart::Stage> stages;
    stages.push_back({{query_, stage, sizeof(uint64_t), {}, {}}, [](Batch&) { return true; }});
    return OperatorPart::make(session().worker(0), OperatorKind::aggregation, reserve,
                              std::move(stages));
  }
  void make_part() { part_ = value_of(make()); }

  /// Appends the numbers from `first` to `end`, each to the partition of its remainder.
  void append(PartitionStore& store, uint64_t first, uint64_t end) {
    for (uint64_t row = first; row < end; ++row)
      ASSERT_TRUE(store.append(static_cast<uint32_t>(row % store.partition_count()), row))
          << part_->status().to_string();
  }
  /// Takes all rows of a partition out: their number, and that each comes once.
  uint64_t take_all(PartitionStore& store, uint32_t partition) {
    PartitionReader reader(store, partition);
    std::set<uint64_t> seen;
    std::span<const std::byte> rows;
    Outcome outcome;
    while ((outcome = reader.next(rows)) == Outcome::done) {
      for (size_t at = 0; at < rows.size(); at += sizeof(uint64_t)) {
        uint64_t row;
        std::memcpy(&row, rows.data() + at, sizeof row);
        EXPECT_EQ(row % store.partition_count(), partition);
        EXPECT_TRUE(seen.insert(row).second) << row << " comes twice";
      }
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream) << part_->status().to_string();
    EXPECT_EQ(store.row_bytes(partition), 0u);
    return seen.size();
  }

  std::optional<SessionCluster> cluster_;
  QueryId query_;
  std::unique_ptr<OperatorPart> part_;
};

TEST_F(PartitionStoreTest, rows_are_read_from_the_partition_to_which_they_were_appended) {
  open({});
  make_part();
  PartitionStore store(*part_, 3);
  append(store, 0, 100'000);
  for (uint32_t p = 0; p < 8; ++p) {
    EXPECT_EQ(store.row_bytes(p), 12'500 * sizeof(uint64_t));
    EXPECT_EQ(store.spilled_bytes(p), 0u);
    EXPECT_EQ(take_all(store, p), 12'500u);
  }
}

TEST_F(PartitionStoreTest, what_does_not_fit_is_spilled_and_read_back) {
  open({{"operator.memory_bytes", std::to_string(kMebibyte)}});
  make_part();
  PartitionStore store(*part_, 4);
  append(store, 0, 400'000);  // three times the memory
  EXPECT_GT(part_->spilled_bytes(), 2 * kMebibyte);
  EXPECT_LE(memory().used_bytes(), kMebibyte);
  EXPECT_LE(part_->peak_bytes(), kMebibyte);
  uint64_t rows = 0;
  for (uint32_t p = 0; p < 16; ++p) rows += take_all(store, p);
  EXPECT_EQ(rows, 400'000u);
}

TEST_F(PartitionStoreTest, half_of_the_memory_of_overflow_stays_for_draining) {
  open({{"operator.memory_bytes", std::to_string(kMebibyte)},
        {"overflow.memory_bytes", std::to_string(kMebibyte)}});
  make_part();
  PartitionStore store(*part_, 2);
  append(store, 0, 500'000);
  EXPECT_GT(memory().spilled_in_memory(), kMebibyte / 4);
  EXPECT_LE(memory().spilled_in_memory(), kMebibyte / 2);
  EXPECT_GT(overflow().file().used_bytes(), kMebibyte);
  EXPECT_EQ(session().metrics().overflow_file_bytes, overflow().file().used_bytes());
  uint64_t rows = 0;
  for (uint32_t p = 0; p < 4; ++p) rows += take_all(store, p);
  EXPECT_EQ(rows, 500'000u);
}

TEST_F(PartitionStoreTest, rows_that_are_added_while_a_partition_is_read_come_too) {
  open({{"operator.memory_bytes", std::to_string(kMebibyte)}});
  make_part();
  PartitionStore store(*part_, 1);
  append(store, 0, 200'000);
  uint64_t next = 200'000, seen = 0;
  {
    PartitionReader reader(store, 0);
    std::span<const std::byte> rows;
    while (reader.next(rows) == Outcome::done) {
      seen += rows.size() / sizeof(uint64_t);
      if (next < 300'000) append(store, next, next + 1000), next += 1000;
    }
  }
  EXPECT_EQ(seen, next / 2);
  EXPECT_EQ(take_all(store, 1), next / 2);
}

TEST_F(PartitionStoreTest, a_store_gives_back_what_it_has_spilled_where_nobody_reads_it) {
  open({{"operator.memory_bytes", std::to_string(kMebibyte)}, {"overflow.memory_bytes", "0"}});
  make_part();
  {
    PartitionStore store(*part_, 2);
    append(store, 0, 300'000);
    EXPECT_GT(overflow().file().used_bytes(), 0u);
    store.clear(0);
    EXPECT_EQ(store.row_bytes(0), 0u);
  }
  EXPECT_EQ(overflow().file().used_bytes(), 0u);
}

TEST_F(PartitionStoreTest, a_query_fails_where_overflow_is_full) {
  open({{"operator.memory_bytes", std::to_string(kMebibyte)},
        {"overflow.memory_bytes", "64 KiB"},
        {"overflow.file_bytes", "256 KiB"}});
  make_part();
  PartitionStore store(*part_, 2);
  uint64_t rows = 0;
  while (rows < 1'000'000 && store.append(static_cast<uint32_t>(rows % 4), rows)) ++rows;
  EXPECT_LT(rows, 1'000'000u);
  EXPECT_EQ(part_->status().code(), Code::overflow_exhausted) << part_->status().to_string();
  EXPECT_FALSE(part_->is_alive());
}

TEST_F(PartitionStoreTest, spilled_rows_count_for_the_limit_of_their_query) {
  open({{"operator.memory_bytes", std::to_string(kMebibyte)},
        {"overflow.query_limit_bytes", std::to_string(kMebibyte)}});
  make_part();
  PartitionStore store(*part_, 2);
  uint64_t rows = 0;
  while (rows < 1'000'000 && store.append(static_cast<uint32_t>(rows % 4), rows)) ++rows;
  EXPECT_LT(rows, 1'000'000u);
  expect_error(part_->status(), Code::overflow_exhausted, {"overflow.query_limit_bytes = 1048576"});
}

TEST_F(PartitionStoreTest, an_operator_needs_its_reserve) {
  open({{"operator.memory_bytes", std::to_string(2 * kMebibyte - 1)}});
  make_part();
  const Result<std::unique_ptr<OperatorPart>> second = make(1);
  expect_error(second.status(), Code::limit_exceeded,
               {"an aggregation", "1048576", "operator.memory_bytes = 2097151"});
  part_.reset();
  EXPECT_EQ(memory().used_bytes(), 0u);
}

TEST_F(PartitionStoreTest, what_one_operator_has_beyond_its_reserve_another_cannot_have) {
  open({{"operator.memory_bytes", std::to_string(4 * kMebibyte)}});
  make_part();
  const std::unique_ptr<OperatorPart> second = value_of(make(1));
  // An eighth is left for reserves.
  EXPECT_TRUE(part_->try_take(5 * kMebibyte / 2));
  EXPECT_FALSE(part_->try_take(1));
  EXPECT_TRUE(second->try_take(kMebibyte)) << "its reserve";
  EXPECT_FALSE(second->try_take(1));
  part_->give(5 * kMebibyte / 2);
  EXPECT_TRUE(second->try_take(kMebibyte));
  second->give(2 * kMebibyte);
}

TEST_F(PartitionStoreTest, memory_of_operators_is_checked_at_the_first_one_and_not_at_open) {
  open({{"operator.memory_bytes", "1048576 GiB"}});
  const Result<std::unique_ptr<OperatorPart>> made = make();
  expect_error(made.status(), Code::resource_limit, {"operator.memory_bytes", "1125899906842624"});
  EXPECT_EQ(memory().used_bytes(), 0u);
}

}  // namespace
}  // namespace faro::test
