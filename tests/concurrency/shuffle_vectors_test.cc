// Many rows of a type that is known at run time, through the public API: by a vector of receivers, by offsets, by a key within the row.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "faro/hash.h"
#include "shuffle/kernels/kernels.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

/// Rows to be sent, and what each receiver is to get of them.
struct Rows {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> offsets{0};
  std::vector<uint32_t> receivers;

  size_t count() const { return receivers.size(); }
  std::span<const std::byte> row(size_t i) const {
    return std::span(bytes).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
  void add(std::span<const std::byte> row, uint32_t receiver) {
    bytes.insert(bytes.end(), row.begin(), row.end());
    offsets.push_back(bytes.size());
    receivers.push_back(receiver);
  }
  /// Those to one receiver, one behind the other, each with its length in front.
  std::vector<std::byte> to(uint32_t receiver) const {
    std::vector<std::byte> all;
    for (size_t i = 0; i < count(); ++i) {
      if (receivers[i] != receiver) continue;
      const auto length = static_cast<uint32_t>(row(i).size());
      const auto* const at = reinterpret_cast<const std::byte*>(&length);
      all.insert(all.end(), at, at + sizeof length);
      all.insert(all.end(), row(i).begin(), row(i).end());
    }
    return all;
  }
};

std::vector<std::byte> random_row(size_t bytes, std::mt19937& random) {
  std::vector<std::byte> row(bytes);
  for (std::byte& byte : row) byte = static_cast<std::byte>(random());
  return row;
}

Rows rows_of_width(size_t bytes, size_t count, uint32_t receivers, uint32_t seed) {
  std::mt19937 random(seed);
  Rows rows;
  for (size_t i = 0; i < count; ++i) rows.add(random_row(bytes, random), random() % receivers);
  return rows;
}

/// Everything until the end of stream by sender, each row with its length in front, as Batch::offsets finds them.
std::vector<std::vector<std::byte>> take_rows_of_all(Shuffle& shuffle) {
  std::vector<std::vector<std::byte>> all(shuffle.spec().senders.size());
  Batch batch;
  Outcome outcome;
  while ((outcome = shuffle.receiver()->receive(batch)) == Outcome::done) {
    std::vector<uint32_t> offsets(batch.row_count() + 1);
    EXPECT_EQ(batch.offsets(offsets), batch.row_count());
    EXPECT_EQ(offsets.back(), batch.bytes().size());
    const size_t before = batch.row_bytes() == 0 ? sizeof(uint32_t) : 0;
    for (size_t i = 0; i < batch.row_count(); ++i) {
      const std::span<const std::byte> row =
          batch.bytes().subspan(offsets[i] + before, offsets[i + 1] - offsets[i] - before);
      const auto length = static_cast<uint32_t>(row.size());
      const auto* const at = reinterpret_cast<const std::byte*>(&length);
      std::vector<std::byte>& to = all[batch.sender()];
      to.insert(to.end(), at, at + sizeof length);
      to.insert(to.end(), row.begin(), row.end());
    }
  }
  EXPECT_EQ(outcome, Outcome::end_of_stream) << shuffle.status().to_string();
  return all;
}

/// Finishes, and takes what worker `w` is to get of `rows_of(sender)` from each.
template <typename RowsOf>
void end_with_all_rows(Shuffle& shuffle, uint32_t w, uint32_t sender_count, const RowsOf& rows_of) {
  ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
  const auto received = take_rows_of_all(shuffle);
  for (uint32_t from = 0; from < sender_count; ++from)
    EXPECT_TRUE(received[from] == rows_of(from).to(w)) << "from " << from << " to " << w;
  shuffle.close();
}

void expect_all_sent(const Sent& sent, size_t count) {
  EXPECT_EQ(sent.outcome, Outcome::done);
  EXPECT_EQ(sent.rows, count);
}

// Around every boundary between two ways of copying; 1 000 bytes are larger than half of a frame, 3 000 larger than a frame.
TEST_F(ShuffleApi, rows_of_a_fixed_width_go_to_the_receivers_that_are_named) {
  constexpr uint32_t kWorkers = 3;
  const QueryId id = open_and_begin(1, {{"cluster.workers", std::to_string(kWorkers)}});
  std::vector<uint32_t> widths = {1000, 3000};
  for (uint32_t bytes = 1; bytes <= 140; ++bytes) widths.push_back(bytes);
  cluster_->run_workers([&](uint32_t w) {
    for (const uint32_t width : widths) {
      SCOPED_TRACE(width);
      Shuffle shuffle = open_shuffle(worker(w), spec(id, width, width));
      const auto rows_of = [&](uint32_t sender) {
        return rows_of_width(width, width == 8 ? 3000 : 300, kWorkers, 100 * width + sender);
      };
      const Rows rows = rows_of(w);
      const auto sender = value_of(shuffle.sender());
      expect_all_sent(sender.send_rows(rows.bytes.data(), rows.count(), rows.receivers.data()),
                      rows.count());
      end_with_all_rows(shuffle, w, kWorkers, rows_of);
    }
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
}

// Rows of all lengths, some larger than a frame; a slice of a column, whose first offset is not 0; with offsets of 64 and of 32 bits.
TEST_F(ShuffleApi, rows_by_offsets_go_to_the_receivers_that_are_named) {
  constexpr uint32_t kWorkers = 2;
  const QueryId id = open_and_begin(1, {{"cluster.workers", std::to_string(kWorkers)}});
  const auto rows_of = [&](uint32_t sender) {
    std::mt19937 random(sender);
    Rows rows;
    rows.bytes = random_row(5, random);
    rows.offsets = {5};
    for (size_t i = 0; i < 2000; ++i) {
      const size_t bytes = i % 100 == 99 ? random() % 10'000 : random() % 150;
      rows.add(random_row(bytes, random), random() % kWorkers);
    }
    return rows;
  };
  cluster_->run_workers([&](uint32_t w) {
    for (const bool wide : {false, true}) {
      Shuffle shuffle = open_shuffle(worker(w), spec(id, wide, 0));
      const auto sender = value_of(shuffle.sender());
      const Rows rows = rows_of(w);
      const std::vector<uint32_t> narrow(rows.offsets.begin(), rows.offsets.end());
      expect_all_sent(wide ? sender.send_rows(rows.bytes.data(), rows.offsets.data(), rows.count(),
                                              rows.receivers.data())
                           : sender.send_rows(rows.bytes.data(), narrow.data(), rows.count(),
                                              rows.receivers.data()),
                      rows.count());
      end_with_all_rows(shuffle, w, kWorkers, rows_of);
    }
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
}

struct KeyCase {
  RowKey key;
  KeyHash hash;
};

uint32_t receiver_by_key(const KeyCase& by, std::span<const std::byte> row,
                         uint32_t receiver_count) {
  const std::byte* const key = row.data() + by.key.offset;
  if (by.key.bytes != 4 && by.key.bytes != 8)
    return partition(hash_bytes(key, by.key.bytes), receiver_count);
  uint64_t number = 0;
  std::memcpy(&number, key, by.key.bytes);
  return partition(
      by.hash == KeyHash::finalizer ? FinalizerHash{}(number) : MultiplicativeHash{}(number),
      receiver_count);
}

TEST_F(ShuffleApi, rows_go_where_their_key_says_also_if_it_is_named_at_run_time) {
  constexpr uint32_t kWorkers = 3;
  constexpr uint32_t kWidth = 20;
  constexpr KeyCase kCases[] = {{{0, 8}, KeyHash::finalizer},  {{3, 8}, KeyHash::multiplicative},
                                {{12, 4}, KeyHash::finalizer}, {{16, 4}, KeyHash::multiplicative},
                                {{1, 13}, KeyHash::finalizer}, {{0, 20}, KeyHash::finalizer}};
  for (const shuffle::Kernel kernel : shuffle::kKernels) {
    if (!shuffle::is_supported(kernel)) continue;
    SCOPED_TRACE(shuffle::kernel_name(kernel));
    const QueryId id =
        open_and_begin(1, {{"cluster.workers", std::to_string(kWorkers)},
                           {"kernel.scatter", std::string(shuffle::kernel_name(kernel))}});
    cluster_->run_workers([&](uint32_t w) {
      for (const KeyCase& by : kCases) {
        const auto stage = static_cast<uint32_t>(&by - kCases);
        SCOPED_TRACE(stage);
        Shuffle shuffle = open_shuffle(worker(w), spec(id, stage, kWidth));
        const auto rows_of = [&](uint32_t sender) {
          Rows rows = rows_of_width(kWidth, 700, kWorkers, sender);
          for (size_t i = 0; i < rows.count(); ++i)
            rows.receivers[i] = receiver_by_key(by, rows.row(i), kWorkers);
          return rows;
        };
        const Rows rows = rows_of(w);
        const auto sender = value_of(shuffle.sender());
        expect_all_sent(sender.send_all(rows.bytes.data(), rows.count(), by.key, by.hash),
                        rows.count());
        end_with_all_rows(shuffle, w, kWorkers, rows_of);
      }
      EXPECT_EQ(worker(w).end_query(id), Outcome::done);
    });
  }
}

// With a ring that is soon full, each call sends some rows, and the next one goes on.
TEST_F(ShuffleApi, a_call_that_sends_many_rows_goes_on_where_the_one_before_ended) {
  const QueryId id = open_and_begin(1);
  const Rows rows = rows_of_width(16, 5000, 1, 7);
  for (const bool by_offsets : {false, true}) {
    Shuffle shuffle = open_shuffle(worker(), spec(id, by_offsets, by_offsets ? 0 : 16));
    const auto sender = value_of(shuffle.sender());
    size_t sent = 0;
    uint32_t calls = 0;
    std::vector<std::byte> received;
    Batch batch;
    while (sent < rows.count()) {
      const size_t rest = rows.count() - sent;
      const uint32_t* const to = rows.receivers.data() + sent;
      const Sent some =
          by_offsets ? sender.send_rows(rows.bytes.data(), rows.offsets.data() + sent, rest, to,
                                        Wait::none())
                     : sender.send_rows(rows.bytes.data() + 16 * sent, rest, to, Wait::none());
      sent += some.rows;
      ++calls;
      ASSERT_TRUE(some.outcome == Outcome::would_wait || some.outcome == Outcome::done);
      ASSERT_EQ(some.outcome == Outcome::done, sent == rows.count());
      while (shuffle.receiver()->receive(batch, Wait::none()) == Outcome::done) {
        for (const std::span<const std::byte> row : batch.each_row())
          received.insert(received.end(), row.begin(), row.end());
      }
    }
    EXPECT_GT(calls, 2u);
    EXPECT_EQ(sender.finish(), Outcome::done);
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      for (const std::span<const std::byte> row : batch.each_row())
        received.insert(received.end(), row.begin(), row.end());
    }
    EXPECT_TRUE(received == rows.bytes);
    shuffle.close();
  }
  EXPECT_EQ(worker().end_query(id), Outcome::done);
}

// In the first block of rows, at its end, in the next one, and as the last row.
TEST_F(ShuffleApi, a_row_that_cannot_be_sent_is_named_and_those_before_it_are_sent) {
  const QueryId id = open_and_begin(1, {{"row.limit_bytes", "5000"}, {"ring.bytes", "65536"}});
  uint32_t stage = 0;
  const auto expect_refused = [&](Shuffle& shuffle, const Sent& sent, size_t row, Code code,
                                  std::initializer_list<std::string_view> parts) {
    expect_failed(sent.outcome, shuffle, code, parts);
    expect_contains(shuffle.status().message(), fmt::format("row {}:", row));
    EXPECT_EQ(sent.rows, row);
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    EXPECT_EQ(take_rows(shuffle), row);
  };
  for (const size_t wrong : {size_t{0}, size_t{7}, size_t{255}, size_t{256}, size_t{599}}) {
    SCOPED_TRACE(wrong);
    Rows rows = rows_of_width(12, 600, 1, 3);
    rows.receivers[wrong] = 1;
    Shuffle fixed = open_shuffle(worker(), spec(id, stage++, 12));
    expect_refused(
        fixed, fixed.sender()->send_rows(rows.bytes.data(), rows.count(), rows.receivers.data()),
        wrong, Code::invalid_argument, {"receiver 1 does not exist (0 … 0)"});
    fixed.close();
    const auto send_by_offsets = [&](Shuffle& shuffle) {
      return shuffle.sender()->send_rows(rows.bytes.data(), rows.offsets.data(), rows.count(),
                                         rows.receivers.data());
    };
    Shuffle by_offsets = open_shuffle(worker(), spec(id, stage++, 0));
    expect_refused(by_offsets, send_by_offsets(by_offsets), wrong, Code::invalid_argument,
                   {"receiver 1 does not exist"});
    by_offsets.close();
    rows.receivers[wrong] = 0;
    rows.offsets[wrong + 1] = rows.offsets[wrong] - 1;
    Shuffle falling = open_shuffle(worker(), spec(id, stage++, 0));
    if (wrong > 0) {
      expect_refused(falling, send_by_offsets(falling), wrong, Code::invalid_argument,
                     {"its offsets fall from"});
    } else {
      // From 0 one less is the greatest offset there is: a row that nobody has.
      expect_refused(falling, send_by_offsets(falling), wrong, Code::row_too_large,
                     {"row.limit_bytes"});
    }
    falling.close();
    std::vector<std::byte> large(20'000);
    for (size_t i = wrong + 1; i < rows.offsets.size(); ++i) rows.offsets[i] = 12 * wrong + 5001;
    rows.bytes = large;
    Shuffle too_large = open_shuffle(worker(), spec(id, stage++, 0));
    expect_refused(too_large, send_by_offsets(too_large), wrong, Code::row_too_large,
                   {"5001 bytes", "row.limit_bytes = 5000"});
    too_large.close();
  }
  EXPECT_EQ(worker().end_query(id), Outcome::done);
}

TEST_F(ShuffleApi, many_rows_in_the_wrong_form_are_refused_before_any_is_sent) {
  const QueryId id = open_and_begin(1);
  const Rows rows = rows_of_width(8, 10, 1, 1);
  Shuffle fixed = open_shuffle(worker(), spec(id, 0, 8));
  Shuffle with_lengths = open_shuffle(worker(), spec(id, 1, 0));
  const auto by_offsets = [&](Shuffle& shuffle) {
    return shuffle.sender()->send_rows(rows.bytes.data(), rows.offsets.data(), 10,
                                       rows.receivers.data());
  };
  const auto expect_none = [](const Sent& sent, Shuffle& shuffle,
                              std::initializer_list<std::string_view> parts) {
    EXPECT_EQ(sent.rows, 0u);
    expect_failed(sent.outcome, shuffle, Code::invalid_argument, parts);
  };
  expect_none(by_offsets(fixed), fixed, {"stage 0", "rows by offsets, but row_bytes = 8"});
  expect_none(with_lengths.sender()->send_rows(rows.bytes.data(), 10, rows.receivers.data()),
              with_lengths, {"stage 1", "rows without offsets"});
  expect_none(with_lengths.sender()->send_all(rows.bytes.data(), 10, {0, 8}), with_lengths,
              {"rows without offsets"});
  expect_none(fixed.sender()->send_rows(nullptr, 1, rows.receivers.data()), fixed,
              {"1 rows of 8 bytes in 0 bytes"});
  for (const RowKey key : {RowKey{1, 8}, RowKey{8, 1}, RowKey{0, 9}, RowKey{0, 0},
                           RowKey{UINT32_MAX, 8}, RowKey{4, UINT32_MAX}}) {
    expect_none(fixed.sender()->send_all(rows.bytes.data(), 10, key), fixed,
                {"a key of", "in rows of 8 bytes"});
  }
  const ShuffleSender none;
  EXPECT_EQ(none.send_rows(rows.bytes.data(), 10, rows.receivers.data()).outcome, Outcome::failed);
  for (Shuffle* shuffle : {&fixed, &with_lengths}) {
    ASSERT_EQ(shuffle->sender()->finish(), Outcome::done);
    EXPECT_EQ(take_rows(*shuffle), 0u);
    shuffle->close();
  }
  EXPECT_EQ(worker().end_query(id), Outcome::done);
}

TEST_F(ShuffleApi, of_many_rows_those_for_a_receiver_that_has_stopped_count_as_sent) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}, {"ring.bytes", "65536"}});
  Shuffle shuffles[] = {open_shuffle(worker(0), spec(id, 0, 16, {0})),
                        open_shuffle(worker(1), spec(id, 0, 16, {0}))};
  ASSERT_EQ(shuffles[1].receiver()->stop(), Outcome::done);
  const auto sender = value_of(shuffles[0].sender());
  const Rows one = rows_of_width(16, 1, 1, 1);
  const uint32_t stopped = 1;
  // Until the sender has heard of it.
  while (worker(0).metrics().rows_dropped == 0) {
    ASSERT_EQ(sender.send_rows(one.bytes.data(), 1, &stopped).outcome, Outcome::done);
    ASSERT_EQ(sender.flush(), Outcome::done);
  }
  const uint64_t dropped = worker(0).metrics().rows_dropped;
  const Rows rows = rows_of_width(16, 1000, 2, 5);
  expect_all_sent(sender.send_rows(rows.bytes.data(), rows.count(), rows.receivers.data()),
                  rows.count());
  const auto for_stopped = std::ranges::count(rows.receivers, 1u);
  EXPECT_EQ(worker(0).metrics().rows_dropped, dropped + static_cast<uint64_t>(for_stopped));
  ASSERT_EQ(shuffles[0].receiver()->stop(), Outcome::done);
  Sent sent;
  do {
    sent = sender.send_rows(rows.bytes.data(), rows.count(), rows.receivers.data(), Wait::none());
    (void)sender.flush();
  } while (sent.outcome == Outcome::done || sent.outcome == Outcome::would_wait);
  EXPECT_EQ(sent.outcome, Outcome::stopped);
}

// Held batches keep the ring full: rows go to overflow, as those of `send` do.
TEST_F(ShuffleApi, while_batches_are_held_many_rows_go_to_overflow) {
  const QueryId id = open_and_begin(1);
  Shuffle held = open_shuffle(worker(), spec(id, 0, 8));
  send_now(held, filled(8, 1));
  Batch batch = take_batch(held);
  const Rows rows = rows_of_width(16, 2000, 1, 5);
  for (const bool by_offsets : {false, true}) {
    Shuffle shuffle = open_shuffle(worker(), spec(id, 1 + by_offsets, by_offsets ? 0 : 16));
    const auto sender = value_of(shuffle.sender());
    expect_all_sent(by_offsets
                        ? sender.send_rows(rows.bytes.data(), rows.offsets.data(), rows.count(),
                                           rows.receivers.data())
                        : sender.send_rows(rows.bytes.data(), rows.count(), rows.receivers.data()),
                    rows.count());
    EXPECT_EQ(sender.finish(Wait::none()), Outcome::holding);
    batch.release();
    std::vector<std::byte> received;
    Batch some;
    Outcome outcome;
    while ((outcome = shuffle.receiver()->receive(some, Wait::none())) != Outcome::end_of_stream) {
      ASSERT_NE(outcome, Outcome::failed) << shuffle.status().to_string();
      if (outcome == Outcome::would_wait) (void)sender.finish(Wait::none());
      for (const std::span<const std::byte> row : some.each_row())
        received.insert(received.end(), row.begin(), row.end());
    }
    EXPECT_EQ(sender.finish(), Outcome::done);
    EXPECT_TRUE(received == rows.bytes);
    shuffle.close();
    if (!by_offsets) {
      send_now(held, filled(8, 1));
      batch = take_batch(held);
    }
  }
  EXPECT_EQ(held.sender()->finish(), Outcome::done);
  EXPECT_EQ(take_rows(held), 0u);
  held.close();
  EXPECT_EQ(worker().end_query(id), Outcome::done);
}

// Another thread writes receivers and offsets while they are read: what is read is what is checked.
TEST_F(ShuffleApi, receivers_and_offsets_may_change_while_they_are_read) {
  const QueryId id = open_and_begin(1, {{"ring.bytes", "65536"}});
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 0));
  const auto sender = value_of(shuffle.sender());
  constexpr size_t kRows = 300;
  std::vector<std::byte> rows(8 * kRows);
  std::vector<uint64_t> offsets(kRows + 1);
  std::vector<uint32_t> receivers(kRows);
  for (size_t i = 0; i <= kRows; ++i) offsets[i] = 8 * i;
  std::atomic<bool> done{false};
  std::thread other([&] {
    std::mt19937 random(1);
    while (!done.load()) {
      const size_t i = random() % kRows;
      std::atomic_ref(receivers[i]).store(random());
      std::atomic_ref(offsets[i]).store(random() % 2 == 0 ? SIZE_MAX - random() % 9 : 0);
      std::atomic_ref(receivers[i]).store(0);
      std::atomic_ref(offsets[i]).store(8 * i);
    }
  });
  uint64_t sent = 0;
  for (int round = 0; round < 2000; ++round) {
    const Sent some = sender.send_rows(rows.data(), offsets.data(), kRows, receivers.data());
    EXPECT_LE(some.rows, kRows);
    sent += some.rows;
    Batch batch;
    while (shuffle.receiver()->receive(batch, Wait::none()) == Outcome::done)
      sent -= batch.row_count();
  }
  done.store(true);
  other.join();
  ASSERT_EQ(sender.finish(), Outcome::done);
  EXPECT_EQ(take_rows(shuffle), sent);
}

TEST_F(ShuffleApi, a_batch_tells_as_many_offsets_as_there_is_room_for) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 0));
  const auto sender = value_of(shuffle.sender());
  for (const size_t bytes : {3, 0, 5}) EXPECT_EQ(sender.send(0, filled(bytes, 1)), Outcome::done);
  ASSERT_EQ(sender.finish(), Outcome::done);
  Batch batch = take_batch(shuffle);
  ASSERT_EQ(batch.row_count(), 3u);
  std::vector<uint32_t> offsets(6, 77);
  EXPECT_EQ(batch.offsets({offsets.data(), 0}), 0u);
  EXPECT_EQ(offsets[0], 77u);
  EXPECT_EQ(batch.offsets({offsets.data(), 3}), 2u);
  EXPECT_EQ(offsets, (std::vector<uint32_t>{0, 7, 11, 77, 77, 77}));
  EXPECT_EQ(batch.offsets(offsets), 3u);
  EXPECT_EQ(offsets, (std::vector<uint32_t>{0, 7, 11, 20, 77, 77}));
  // What a peer on the same machine could do.
  auto* const bytes = const_cast<std::byte*>(batch.bytes().data());
  const uint32_t length = 1000;
  std::memcpy(bytes + 7, &length, sizeof length);
  EXPECT_EQ(batch.offsets(offsets), 1u);
  batch.release();
  EXPECT_EQ(batch.offsets(offsets), 0u);
}

}  // namespace
}  // namespace faro::test
