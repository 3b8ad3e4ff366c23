// Rows that are broadcast through the public API: to everybody, in order, to all or to none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

/// What a worker received, by sender: the rows' bytes in order.
std::map<uint32_t, std::vector<std::byte>> take_all(Shuffle& shuffle) {
  std::map<uint32_t, std::vector<std::byte>> received;
  Batch batch;
  while (shuffle.receiver()->receive(batch) == Outcome::done) {
    std::vector<std::byte>& from = received[batch.sender()];
    for (const std::span<const std::byte> row : batch.each_row())
      from.insert(from.end(), row.begin(), row.end());
  }
  return received;
}

// One thread for both workers: the one that has stopped does so before the row is sent.
TEST_F(ShuffleApi, rows_with_lengths_are_broadcast_past_a_receiver_that_has_stopped) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}});
  Shuffle sender = open_shuffle(worker(0), spec(id, 0, 0, {0}));
  Shuffle stopped = open_shuffle(worker(1), spec(id, 0, 0, {0}));
  const ShuffleSender rows = *sender.sender();
  ASSERT_EQ(rows.broadcast(filled(10, 1)), Outcome::done);
  (void)stopped.receiver()->stop();
  (void)sender.sender()->flush();  // learns of it
  for (int row = 2; row < 5; ++row) ASSERT_EQ(rows.broadcast(filled(10, row)), Outcome::done);
  EXPECT_EQ(sender.sender()->finish(), Outcome::done);
  std::vector<std::byte> expected;
  for (int row = 1; row < 5; ++row)
    expected.insert(expected.end(), 10, static_cast<std::byte>(row));
  EXPECT_EQ(take_all(sender)[0], expected);
}

// Room for one row more in the open frame of each, and for many.
TEST_F(ShuffleApi, a_multicast_that_names_a_receiver_twice_sends_to_nobody) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}});
  Shuffle sender = open_shuffle(worker(0), spec(id, 0, 400, {0}));
  Shuffle other = open_shuffle(worker(1), spec(id, 0, 400, {0}));
  const std::vector<uint32_t> everyone{0, 1}, twice{0, 1, 0};
  for (int row = 0; row < 3; ++row) {
    expect_failed(sender.sender()->multicast(twice, filled(400, 9), Wait::none()), sender,
                  Code::invalid_argument, {"receiver 0 is named twice"});
    ASSERT_EQ(sender.sender()->multicast(everyone, filled(400, row)), Outcome::done);
  }
  EXPECT_EQ(sender.sender()->finish(), Outcome::done);
  std::vector<std::byte> expected;
  for (int row = 0; row < 3; ++row)
    expected.insert(expected.end(), 400, static_cast<std::byte>(row));
  EXPECT_EQ(take_all(sender)[0], expected);
  EXPECT_EQ(take_all(other)[0], expected);
}

TEST_F(ShuffleApi, a_large_row_for_a_receiver_that_is_named_twice_goes_to_nobody) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 3000));
  EXPECT_EQ(shuffle.sender()->multicast(std::vector<uint32_t>{0, 0}, filled(3000, 1)),
            Outcome::failed);
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  EXPECT_EQ(take_all(shuffle).size(), 0u);
}

// Many times what fits into the rings, so that the inlined path and the one that makes room meet.
TEST_F(ShuffleApi, rows_that_are_broadcast_reach_everybody_in_order) {
  const QueryId id = open_and_begin(2, {{"cluster.workers", "2"}});
  std::vector<uint64_t> rows(5000);
  std::iota(rows.begin(), rows.end(), 0u);
  const auto bytes = std::as_bytes(std::span(rows));
  const std::vector<std::byte> expected(bytes.begin(), bytes.end());
  std::vector<std::map<uint32_t, std::vector<std::byte>>> received(cluster_->worker_count());
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 8, {0, 3}));
    if (w == 0 || w == 3) {
      const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
      std::span<const uint64_t> left(rows);
      Outcome outcome = Outcome::done;
      for (size_t block = 1; !left.empty() && outcome == Outcome::done; block = block * 3 % 1009) {
        const size_t count = std::min(block, left.size());
        const Sent sent = sender.broadcast_all(left.first(count));
        EXPECT_EQ(sent.rows, count);
        outcome = sent.outcome;
        left = left.subspan(count);
      }
      EXPECT_EQ(outcome, Outcome::done);
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    }
    received[w] = take_all(shuffle);
    close_and_end(shuffle, w, id);
  });
  for (const auto& from : received) {
    EXPECT_EQ(from.size(), 2u);
    for (const auto& [sender, all] : from) EXPECT_EQ(all, expected) << sender;
  }
}

TEST_F(ShuffleApi, rows_that_are_broadcast_go_to_all_or_to_none) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}});
  std::vector<Shuffle> shuffles;
  for (const uint32_t w : {0, 1}) shuffles.push_back(open_shuffle(worker(w), spec(id, 0, 8, {0})));
  const RowSender<uint64_t> sender = *shuffles[0].sender<uint64_t>();
  const std::vector<uint64_t> rows(1 << 20, 7);
  const auto [taken, outcome] = sender.broadcast_all(rows, Wait::none());
  EXPECT_EQ(outcome, Outcome::would_wait);
  EXPECT_EQ(sender.broadcast(filled(8, 7), Wait::none()), Outcome::would_wait);
  ASSERT_GT(taken, 0u);
  ASSERT_LT(taken, rows.size());
  for (const uint32_t w : {0, 1}) worker(w).release_ownership();
  cluster_->run_workers([&](uint32_t w) {
    if (w == 0) {
      EXPECT_EQ(shuffles[0].sender()->finish(), Outcome::done);
    }
    EXPECT_EQ(take_all(shuffles[w])[0].size(), taken * sizeof(uint64_t));
    shuffles[w].close();
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
}

TEST_F(ShuffleApi, rows_that_are_broadcast_are_dropped_for_a_receiver_that_has_stopped) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}});
  constexpr uint64_t kRows = 20000;
  std::vector<uint64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0u);
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 8, {0}));
    if (w == 1) {
      (void)shuffle.receiver()->stop();
    } else {
      const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
      for (size_t begin = 0; begin < kRows; begin += 500) {
        const Sent sent = sender.broadcast_all(std::span(rows).subspan(begin, 500));
        EXPECT_EQ(sent.rows, 500u);
        EXPECT_EQ(sent.outcome, Outcome::done);
      }
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
      const auto bytes = std::as_bytes(std::span(rows));
      EXPECT_EQ(take_all(shuffle)[0], std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
    close_and_end(shuffle, w, id);
  });
}

// A length each: around the size of a frame (1 KiB) and above.
TEST_F(ShuffleApi, rows_with_a_length_each_are_broadcast_as_they_were_written) {
  const QueryId id = open_and_begin(2);
  std::vector<std::vector<std::byte>> rows;
  std::vector<std::byte> expected;
  for (int i = 0; i < 300; ++i) {
    rows.push_back(filled(static_cast<size_t>(i) * 37 % 1500, i));
    expected.insert(expected.end(), rows.back().begin(), rows.back().end());
  }
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 0, {1}));
    if (w == 1) {
      const ShuffleSender sender = *shuffle.sender();
      for (const auto& row : rows) EXPECT_EQ(sender.broadcast(row), Outcome::done);
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    }
    EXPECT_EQ(take_all(shuffle)[0], expected);
    close_and_end(shuffle, w, id);
  });
}

}  // namespace
}  // namespace faro::test
