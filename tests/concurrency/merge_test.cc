// MergingReceiver: sorted streams of several senders, as one.
#include "faro/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

struct Keyed {
  uint64_t key;
  uint32_t sender;
  uint32_t number;
};
struct ByKey {
  bool operator()(const Keyed& a, const Keyed& b) const { return a.key < b.key; }
};

using Bytes = std::span<const std::byte>;
struct ByBytes {
  bool operator()(const Bytes& a, const Bytes& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
};

/// Sorted; few keys, so that many are equal. Worker 2 has none.
std::vector<Keyed> rows_of(uint32_t worker) {
  std::mt19937 random(worker);
  std::vector<Keyed> rows(worker == 2 ? 0 : 3000 + worker);
  for (Keyed& row : rows) row.key = random() % 500;
  std::ranges::sort(rows, ByKey());
  for (uint32_t n = 0; n < rows.size(); ++n) rows[n] = {rows[n].key, worker, n};
  return rows;
}

// Rings of 4 KiB: nobody can send all before it is taken.
TEST_F(ShuffleApi, sorted_streams_are_merged_stably_and_nothing_is_held) {
  const QueryId id = open_and_begin(2, {{"cluster.workers", "2"}});
  std::vector<Keyed> expected;
  for (const uint32_t worker : {3u, 0u, 1u, 2u}) {  // as the senders are named
    const std::vector<Keyed> rows = rows_of(worker);
    expected.insert(expected.end(), rows.begin(), rows.end());
  }
  std::ranges::stable_sort(expected, ByKey());
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, sizeof(Keyed), {3, 0, 1, 2}, {1}));
    const RowSender<Keyed> sender = *shuffle.sender<Keyed>();
    for (const Keyed& row : rows_of(w)) ASSERT_EQ(sender.send(0, row), Outcome::done);
    ASSERT_EQ(sender.finish(), Outcome::done);
    if (w == 1) {
      // It is a sender, too: its own rows went to overflow while it still made them.
      auto merged = value_of(MergingReceiver<Keyed, ByKey>::make(shuffle));
      Keyed row{};
      Outcome outcome = Outcome::done;
      for (const Keyed& next : expected) {
        ASSERT_EQ(outcome = merged.next(row), Outcome::done) << shuffle.status().to_string();
        ASSERT_EQ(row.key, next.key);
        ASSERT_EQ(row.sender, next.sender);
        ASSERT_EQ(row.number, next.number);
      }
      EXPECT_EQ(merged.next(row), Outcome::end_of_stream);
      EXPECT_EQ(merged.next(row), Outcome::end_of_stream) << "repeatable";
      EXPECT_EQ(worker(w).metrics().held_frames, 0u);
    }
    close_and_end(shuffle, w, id);
  });
}

// Lengths around a frame (1 KiB) and above.
TEST_F(ShuffleApi, sorted_rows_with_a_length_each_are_merged) {
  const QueryId id = open_and_begin(2);
  const auto text = [](uint32_t worker, uint32_t n) {
    return std::to_string(100000 + 2 * n + worker) + std::string(n * 7 % 1500, 'x');
  };
  constexpr uint32_t kRows = 300;
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 0, {}, {0}));
    const ShuffleSender sender = *shuffle.sender();
    for (uint32_t n = 0; n < kRows; ++n) {
      const std::string row = text(w, n);
      ASSERT_EQ(sender.send(0, std::as_bytes(std::span(row))), Outcome::done);
    }
    ASSERT_EQ(sender.finish(), Outcome::done);
    if (w == 0) {
      auto merged = value_of(MergingReceiver<Bytes, ByBytes>::make(shuffle));
      Bytes row;
      for (uint32_t n = 0; n < 2 * kRows; ++n) {
        ASSERT_EQ(merged.next(row), Outcome::done);
        const std::string_view got(reinterpret_cast<const char*>(row.data()), row.size());
        ASSERT_EQ(got, text(n % 2, n / 2));
      }
      EXPECT_EQ(merged.next(row), Outcome::end_of_stream);
    }
    close_and_end(shuffle, w, id);
  });
}

// One thread for both workers.
TEST_F(ShuffleApi, a_merge_that_does_not_wait_goes_on_where_it_was) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}});
  Shuffle first = open_shuffle(worker(0), spec(id, 0, 8, {}, {0}));
  Shuffle second = open_shuffle(worker(1), spec(id, 0, 8, {}, {0}));
  const RowSender<uint64_t> from0 = *first.sender<uint64_t>();
  const RowSender<uint64_t> from1 = *second.sender<uint64_t>();
  auto merged = value_of(MergingReceiver<uint64_t>::make(first));
  uint64_t row = 0;
  EXPECT_EQ(merged.next(row, Wait::none()), Outcome::would_wait);
  ASSERT_EQ(from0.send(0, 5), Outcome::done);
  ASSERT_EQ(from0.finish(), Outcome::done);
  EXPECT_EQ(merged.next(row, Wait::none()), Outcome::would_wait) << "worker 1 could have less";
  EXPECT_EQ(merged.next(row, Wait::at_most(std::chrono::milliseconds(1))), Outcome::deadline);
  ASSERT_EQ(from1.send(0, 3), Outcome::done);
  ASSERT_EQ(from1.flush(), Outcome::done);
  EXPECT_EQ(merged.next(row, Wait::none()), Outcome::done);
  EXPECT_EQ(row, 3u);
  EXPECT_EQ(merged.next(row, Wait::none()), Outcome::would_wait);
  ASSERT_EQ(from1.send(0, 7), Outcome::done);
  ASSERT_EQ(from1.finish(), Outcome::done);
  EXPECT_EQ(merged.next(row, Wait::none()), Outcome::done);
  EXPECT_EQ(row, 5u);
  EXPECT_EQ(merged.next(row, Wait::none()), Outcome::done);
  EXPECT_EQ(row, 7u);
  EXPECT_EQ(merged.next(row, Wait::none()), Outcome::end_of_stream);
  EXPECT_EQ(MergingReceiver<uint32_t>::make(first).status().code(), Code::invalid_argument);
  EXPECT_EQ(MergingReceiver<uint64_t>::make(second).status().code(), Code::wrong_state);
}

TEST_F(ShuffleApi, a_merge_says_that_the_query_has_failed) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}});
  Shuffle first = open_shuffle(worker(0), spec(id, 0, 8, {}, {0}));
  Shuffle second = open_shuffle(worker(1), spec(id, 0, 8, {}, {0}));
  auto merged = value_of(MergingReceiver<uint64_t>::make(first));
  EXPECT_TRUE(second.cancel("enough").ok());
  uint64_t row = 0;
  EXPECT_EQ(merged.next(row), Outcome::failed);
  EXPECT_EQ(first.status().code(), Code::query_cancelled);
}

}  // namespace
}  // namespace faro::test
