// Rows and receivers through the public API: sizes, widths, workers that do not exist, and workers that open nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;

TEST_F(ShuffleApi, a_row_above_the_limit_is_refused_and_the_query_goes_on) {
  const QueryId id = open_and_begin(1, {{"row.limit_bytes", "1000"}});
  Shuffle shuffle = open_shuffle(worker(), spec(id, 3, 0));
  expect_failed(shuffle.sender()->send(0, filled(1001, 1), Wait::none()), shuffle,
                Code::row_too_large, {"stage 3", "1001 bytes", "row.limit_bytes = 1000"});
  RowClaim claim;
  expect_failed(shuffle.sender()->claim(0, 1001, claim, Wait::none()), shuffle,
                Code::row_too_large);
  EXPECT_EQ(shuffle.sender()->send(0, filled(1000, 2)), Outcome::done);
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  Batch batch = take_batch(shuffle);
  EXPECT_EQ((*batch.each_row().begin()).size(), 1000u);
  batch.release();
  EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
  shuffle.close();
  EXPECT_EQ(worker().open_shuffle(spec(id, 4, 1001)).status().code(), Code::invalid_argument);
  EXPECT_EQ(worker().end_query(id), Outcome::done);
}

// Rows of every size around a frame (1 KiB) and far above it, copied and written in place.
TEST_F(ShuffleApi, rows_with_a_length_each_arrive_as_they_were_written) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 0));
  const auto sender = value_of(shuffle.sender());
  EXPECT_EQ(shuffle.sender<uint64_t>().status().code(), Code::invalid_argument);
  const std::vector<size_t> sizes = {0,    1,    3,    100,  500, 500, 1000,
                                     1001, 1004, 1008, 1024, 0,   7,   5000};
  const auto value = [](size_t i) { return static_cast<int>(17 * i % 251); };
  for (size_t i = 0; i < sizes.size(); ++i) {
    SCOPED_TRACE(sizes[i]);
    const auto fail = [](std::byte*) { throw std::runtime_error("no row after all"); };
    EXPECT_THROW((void)sender.write(0, sizes[i], fail), std::runtime_error);
    const auto fill = [&](std::byte* to) { std::memset(to, value(i), sizes[i]); };
    EXPECT_EQ(
        i % 2 == 0 ? sender.write(0, sizes[i], fill) : sender.send(0, filled(sizes[i], value(i))),
        Outcome::done);
  }
  EXPECT_EQ(sender.write(
                1, 10, [](std::byte*) { ADD_FAILURE(); }, Wait::none()),
            Outcome::failed);
  expect_contains(shuffle.status().message(), "receiver 1 does not exist");
  ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
  size_t row_count = 0;
  Batch batch;
  while (shuffle.receiver()->receive(batch) == Outcome::done) {
    for (const std::span<const std::byte> row : batch.each_row()) {
      ASSERT_LT(row_count, sizes.size());
      EXPECT_TRUE(std::ranges::equal(row, filled(sizes[row_count], value(row_count))))
          << "row " << row_count << " of " << row.size() << " bytes";
      ++row_count;
    }
  }
  EXPECT_EQ(row_count, sizes.size());
}

/// A row whose bytes follow from its number, in memory of its own that ends where the row does.
std::vector<std::byte> numbered_row(size_t bytes, uint32_t number) {
  std::vector<std::byte> row(bytes);
  for (size_t i = 0; i < bytes; ++i) row[i] = static_cast<std::byte>(number * 37 + i * 11 + 1);
  return row;
}
/// Sends as many bytes in each way there is, and something that must not disturb it between them; the numbers of the rows go on
/// from `sent`.
void send_in_every_way(const ShuffleSender& sender, size_t bytes, uint32_t& sent) {
  for (int round = 0; round < 3; ++round) {
    const auto first = numbered_row(bytes, sent);
    EXPECT_EQ(sender.send(0, first), Outcome::done);
    const auto second = numbered_row(bytes, sent + 1);
    const auto fill = [&](std::byte* to) { std::ranges::copy(second, to); };
    EXPECT_EQ(sender.write(0, bytes, fill), Outcome::done);
    EXPECT_EQ(sender.broadcast(numbered_row(bytes, sent + 2)), Outcome::done);
    sent += 3;
    EXPECT_EQ(sender.send(1, first, Wait::none()), Outcome::failed) << "no such receiver";
    const auto not_called = [](std::byte*) { ADD_FAILURE(); };
    for (const size_t absurd :
         {SIZE_MAX, SIZE_MAX - 3, SIZE_MAX - 4, size_t{UINT32_MAX}, size_t{UINT32_MAX} + 1 + bytes})
      EXPECT_EQ(sender.write(0, absurd, not_called, Wait::none()), Outcome::failed) << absurd;
  }
}

// Around every boundary between two ways of copying.
TEST_F(ShuffleApi, rows_of_a_width_given_at_run_time_arrive_as_they_were_sent) {
  const QueryId id = open_and_begin(1, {{"ring.bytes", "65536"}});
  for (uint32_t bytes = 1; bytes <= 140; ++bytes) {
    SCOPED_TRACE(bytes);
    Shuffle shuffle = open_shuffle(worker(), spec(id, bytes, bytes));
    const auto sender = value_of(shuffle.sender());
    uint32_t sent = 0;
    send_in_every_way(sender, bytes, sent);
    for (const size_t other : {bytes - 1, bytes + 1, 0u}) {
      EXPECT_EQ(sender.send(0, numbered_row(other, 0), Wait::none()), Outcome::failed) << other;
      EXPECT_EQ(sender.broadcast(numbered_row(other, 0), Wait::none()), Outcome::failed) << other;
    }
    ASSERT_EQ(sender.finish(), Outcome::done);
    uint32_t received = 0;
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      for (const std::span<const std::byte> row : batch.each_row())
        EXPECT_TRUE(std::ranges::equal(row, numbered_row(bytes, received++)));
    }
    EXPECT_EQ(received, sent);
    shuffle.close();
  }
  EXPECT_EQ(worker().end_query(id), Outcome::done);
}

TEST_F(ShuffleApi, rows_of_every_small_length_arrive_as_they_were_sent) {
  const QueryId id = open_and_begin(1, {{"ring.bytes", "262144"}});
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 0));
  const auto sender = value_of(shuffle.sender());
  uint32_t sent = 0;
  for (size_t bytes = 0; bytes <= 140; ++bytes) {
    SCOPED_TRACE(bytes);
    send_in_every_way(sender, bytes, sent);
  }
  ASSERT_EQ(sender.finish(), Outcome::done);
  uint32_t received = 0;
  Batch batch;
  while (shuffle.receiver()->receive(batch) == Outcome::done) {
    for (const std::span<const std::byte> row : batch.each_row()) {
      EXPECT_TRUE(std::ranges::equal(row, numbered_row(received / 9, received))) << received;
      ++received;
    }
  }
  EXPECT_EQ(received, sent);
}

/// A row of 100 bytes that all follow from its number.
struct WideRow {
  std::byte bytes[100];
};
void write_wide(uint64_t number, std::byte* to) {
  std::memcpy(to, &number, sizeof number);
  for (size_t i = sizeof number; i < sizeof(WideRow); ++i)
    to[i] = static_cast<std::byte>(number * 31 + i);
}
/// Its number; UINT64_MAX if it is damaged.
uint64_t read_wide(const WideRow& row) {
  uint64_t number;
  std::memcpy(&number, row.bytes, sizeof number);
  std::byte whole[sizeof(WideRow)];
  write_wide(number, whole);
  return std::memcmp(whole, row.bytes, sizeof whole) == 0 ? number : UINT64_MAX;
}
constexpr auto number_itself = [](size_t i) { return uint64_t{i}; };

// Each sends the same numbers, far more than fit into the rings, while the others send, too.
TEST_F(ShuffleApi, rows_written_where_they_are_sent_from_go_where_their_keys_say) {
  constexpr uint32_t kWorkers = 3;
  constexpr size_t kRows = 3000;
  const QueryId id = open_and_begin(1, {{"cluster.workers", std::to_string(kWorkers)}});
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, sizeof(WideRow)));
    const auto sender = value_of(shuffle.sender<WideRow>());
    const Sent sent = sender.write_all(kRows, FinalizerHash{}, number_itself, write_wide);
    EXPECT_EQ(sent.rows, kRows);
    EXPECT_EQ(sent.outcome, Outcome::done);
    ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
    std::vector<uint64_t> expected;
    for (uint64_t n = 0; n < kRows; ++n) {
      if (partition(FinalizerHash{}(n), kWorkers) == w) expected.push_back(n);
    }
    std::vector<std::vector<uint64_t>> received(kWorkers);
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      for (const WideRow& row : batch.rows<WideRow>())
        received[batch.sender()].push_back(read_wide(row));
    }
    for (uint32_t from = 0; from < kWorkers; ++from)
      EXPECT_EQ(received[from], expected) << "of worker " << from << " at worker " << w;
  });
}

// What send_all spills then (shuffle_waiting_test.cc), writing in place leaves to its caller.
TEST_F(ShuffleApi, rows_written_where_they_are_sent_from_do_not_go_to_overflow) {
  constexpr size_t kRows = 300;  // several times the ring
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, sizeof(WideRow)));
  const auto sender = value_of(shuffle.sender<WideRow>());
  size_t sent = 0;
  Outcome outcome = Outcome::done;
  const auto send = [&](Wait wait, size_t count) {
    const auto number = [&](size_t i) { return uint64_t{sent + i}; };
    const auto fill = [&](size_t i, std::byte* to) { write_wide(sent + i, to); };
    const Sent more = sender.write_all(count, FinalizerHash{}, number, fill, wait);
    sent += more.rows;
    outcome = more.outcome;
  };
  std::vector<uint64_t> received;
  const auto note = [&](const Batch& batch) {
    for (const WideRow& row : batch.rows<WideRow>()) received.push_back(read_wide(row));
  };
  send(Wait::none(), 1);
  (void)shuffle.sender()->flush();
  Batch held = take_batch(shuffle);
  note(held);
  for (const Wait wait : {Wait::none(), Wait::forever(), Wait::none()}) {
    send(wait, kRows - sent);
    EXPECT_EQ(outcome, Outcome::holding);
    EXPECT_LT(sent, kRows);
  }
  held.release();
  bool finished = false;
  Batch batch;
  for (Outcome polled = Outcome::done; polled != Outcome::end_of_stream;) {
    if (sent < kRows) send(Wait::none(), kRows - sent);
    finished =
        finished || (sent == kRows && shuffle.sender()->finish(Wait::none()) == Outcome::done);
    polled = shuffle.receiver()->receive(batch, Wait::none());
    ASSERT_NE(polled, Outcome::failed) << shuffle.status().to_string();
    if (polled == Outcome::done) note(batch);
    batch.release();
  }
  std::vector<uint64_t> expected(kRows);
  std::iota(expected.begin(), expected.end(), uint64_t{0});
  EXPECT_EQ(received, expected);
  EXPECT_EQ(worker().metrics().frames_out_overflow, 0u);
}

TEST_F(ShuffleApi, a_row_whose_writing_throws_was_not_begun) {
  constexpr size_t kRows = 50;  // some of them begin a frame, of 1 KiB
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, sizeof(WideRow)));
  const auto sender = value_of(shuffle.sender<WideRow>());
  std::vector<uint64_t> received;
  for (uint64_t n = 0; n < kRows; ++n) {
    EXPECT_THROW((void)sender.write_all(
                     1, FinalizerHash{}, [n](size_t) { return n; },
                     [](size_t, std::byte* to) {
                       write_wide(UINT64_MAX, to);
                       throw std::runtime_error("no row after all");
                     }),
                 std::runtime_error);
    const Sent sent = sender.write_all(
        1, FinalizerHash{}, [n](size_t) { return n; },
        [n](size_t, std::byte* to) { write_wide(n, to); });
    EXPECT_EQ(sent.rows, 1u);
  }
  ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
  Batch batch;
  while (shuffle.receiver()->receive(batch) == Outcome::done) {
    for (const WideRow& row : batch.rows<WideRow>()) received.push_back(read_wide(row));
  }
  std::vector<uint64_t> expected(kRows);
  std::iota(expected.begin(), expected.end(), uint64_t{0});
  EXPECT_EQ(received, expected);
}

TEST_F(ShuffleApi, a_receiver_that_does_not_exist_is_refused_and_the_query_goes_on) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}});
  {
    Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8, {0}, {0}));
    expect_failed(shuffle.sender()->send(1, filled(8, 1), Wait::none()), shuffle,
                  Code::invalid_argument, {"receiver 1 does not exist"});
    const uint32_t some[] = {0, 7};
    EXPECT_EQ(shuffle.sender()->multicast(some, filled(8, 1), Wait::none()), Outcome::failed);
    auto sender = value_of(shuffle.sender<uint64_t>());
    EXPECT_EQ(sender.send(1, 5, Wait::none()), Outcome::failed);
    EXPECT_EQ(sender.send(UINT32_MAX, 5, Wait::none()), Outcome::failed);
    EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    Batch batch;
    EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream)
        << "a multicast is sent to all or none";
    EXPECT_EQ(shuffle.receiver()->receive_from(1, batch, Wait::none()), Outcome::failed)
        << "no sender";
    EXPECT_EQ(shuffle.receiver()->receive_from(9, batch, Wait::none()), Outcome::failed);
  }
  for (const std::vector<uint32_t>& wrong :
       {std::vector<uint32_t>{2}, {0, 0}, {0, 1, UINT32_MAX}}) {
    EXPECT_EQ(worker().open_shuffle(spec(id, 1, 8, wrong, {})).status().code(),
              Code::invalid_argument);
    EXPECT_EQ(worker().open_shuffle(spec(id, 1, 8, {}, wrong)).status().code(),
              Code::invalid_argument);
  }
}

// Worker 2 sends before the receiver has opened, worker 0 after that.
TEST_F(ShuffleApi, senders_are_named_by_their_place_in_the_list_of_senders) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "3"}});
  const ShuffleSpec named = spec(id, 0, 8, {2, 0}, {1});
  const std::vector<uint32_t> places = {1, 0, 0};  // by worker
  const auto send = [&](Shuffle& from, uint64_t number, size_t rows) {
    for (size_t i = 0; i < rows; ++i) send_now(from, std::as_bytes(std::span(&number, 1)));
    EXPECT_EQ(from.sender()->finish(), Outcome::done);
  };
  const auto expect_rows_by_place = [&](Shuffle& at, uint32_t place, Batch& batch) {
    EXPECT_EQ(batch.sender(), place);
    for (const uint64_t number : batch.rows<uint64_t>()) EXPECT_EQ(places[number], place);
    ASSERT_EQ(at.metrics().received.size(), 2u);
    EXPECT_EQ(at.metrics().received[place].sender, place);
  };
  Shuffle second = open_shuffle(worker(2), named);
  send(second, 2, 3);
  Shuffle at = open_shuffle(worker(1), named);
  Shuffle first = open_shuffle(worker(0), named);
  send(first, 0, 5);
  Batch batch;
  uint32_t rows = 0;
  for (Outcome taken; (taken = at.receiver()->receive_from(1, batch)) == Outcome::done;) {
    expect_rows_by_place(at, 1, batch);
    rows += batch.row_count();
  }
  EXPECT_EQ(rows, 5u) << "of worker 0";
  while (at.receiver()->receive(batch) == Outcome::done) expect_rows_by_place(at, 0, batch);
  EXPECT_EQ(at.metrics().received[0].rows, 3u) << "of worker 2";
  expect_failed(at.receiver()->receive_from(2, batch), at, Code::invalid_argument,
                {"sender 2 does not exist"});
}

TEST_F(ShuffleApi, each_side_keeps_why_its_own_last_call_has_failed) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  const ShuffleSender sender = value_of(shuffle.sender());
  const ShuffleReceiver receiver = value_of(shuffle.receiver());
  Batch batch;
  EXPECT_TRUE(sender.status().ok() && receiver.status().ok() && shuffle.status().ok());
  EXPECT_EQ(sender.send(7, filled(8, 1)), Outcome::failed);
  EXPECT_TRUE(receiver.status().ok()) << receiver.status().to_string();
  EXPECT_EQ(receiver.receive_from(9, batch), Outcome::failed);
  expect_error(sender.status(), Code::invalid_argument, {"receiver 7"});
  expect_error(receiver.status(), Code::invalid_argument, {"sender 9"});
  expect_error(shuffle.status(), Code::invalid_argument, {"sender 9"});
  EXPECT_EQ(sender.send(8, filled(8, 1)), Outcome::failed);
  expect_error(receiver.status(), Code::invalid_argument, {"sender 9"});
  expect_error(shuffle.status(), Code::invalid_argument, {"receiver 8"});
  // What succeeds clears neither.
  EXPECT_EQ(sender.send(0, filled(8, 1)), Outcome::done);
  EXPECT_EQ(sender.finish(), Outcome::done);
  EXPECT_EQ(receiver.receive(batch), Outcome::done);
  expect_error(sender.status(), Code::invalid_argument, {"receiver 8"});
  expect_error(receiver.status(), Code::invalid_argument, {"sender 9"});
}

TEST_F(ShuffleApi, a_node_that_does_not_exist_is_not_waited_for) {
  open(1);
  EXPECT_TRUE(session().await_node(0).ok());
  EXPECT_EQ(session().await_node(1).code(), Code::invalid_argument);
}

TEST_F(ShuffleApi, a_row_of_another_width_is_refused) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  expect_failed(shuffle.sender()->send(0, filled(7, 1), Wait::none()), shuffle,
                Code::invalid_argument, {"7 bytes", "row_bytes = 8"});
  EXPECT_EQ(shuffle.sender<uint32_t>().status().code(), Code::invalid_argument);
  RowClaim claim;
  EXPECT_EQ(shuffle.sender()->claim(0, 9, claim, Wait::none()), Outcome::failed);
  ASSERT_EQ(shuffle.sender()->claim(0, 8, claim, Wait::none()), Outcome::done);
  EXPECT_EQ(claim.commit(7).code(), Code::invalid_argument);
  EXPECT_EQ(claim.data().size(), 8u) << "still claimed";
  EXPECT_TRUE(claim.commit().ok());
  EXPECT_EQ(claim.commit().code(), Code::wrong_state);
}

TEST_F(ShuffleApi, rows_read_as_wider_ones_fail_the_query_and_are_not_taken_for_none) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 3, 8));
  ASSERT_EQ(shuffle.sender()->send(0, filled(8, 1)), Outcome::done);
  ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
  Batch batch = take_batch(shuffle);
  EXPECT_EQ(batch.rows<uint64_t>().size(), 1u);
  EXPECT_EQ(batch.rows<uint32_t>().size(), 0u);
  batch.release();
  EXPECT_EQ(batch.rows<uint32_t>().size(), 0u) << "an empty batch has no width";
  shuffle.close();
  expect_error(end_failed(worker(), id), Code::query_failed,
               {"worker 0", "stage 3", "8 bytes", "4 bytes"});
}

TEST_F(ShuffleApi, widths_that_differ_between_nodes_fail_the_query_on_both) {
  for (const bool opened_before : {true, false}) {
    const QueryId id = open_and_begin(2);
    Shuffle receiver;
    if (opened_before) receiver = open_shuffle(worker(1), spec(id, 0, 16, {0}, {1}));
    Shuffle sender = open_shuffle(worker(0), spec(id, 0, 8, {0}, {1}));
    send_now(sender, filled(8, 1));
    Status status;
    if (opened_before) {
      Batch batch;
      EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
      status = receiver.status();
    } else {
      // The rows are there before it opens, at some time.
      for (uint32_t stage = 0; status.ok(); ++stage) {
        (void)worker(1).wait_until([] { return false; }, Wait::at_most(milliseconds(1)));
        if (session(1).metrics().lanes.empty()) continue;
        uint64_t frames = 0;
        for (const LaneMetrics& lane : session(1).metrics().lanes) frames += lane.frames_received;
        if (frames < 2) continue;
        status = worker(1).open_shuffle(spec(id, 0, 16, {0}, {1})).status();
        ASSERT_FALSE(status.ok());
      }
    }
    expect_error(status, Code::stage_mismatch, {"row_bytes = 8", "16"});
    Batch none;
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done) {
      outcome = sender.sender()->send(0, filled(8, 1));
      (void)sender.sender()->flush();
    }
    EXPECT_EQ(outcome, Outcome::failed);
    EXPECT_EQ(sender.status().code(), Code::stage_mismatch);
    cluster_->close();
  }
}

TEST_F(ShuffleApi, rows_that_nobody_opens_fail_the_query_in_time) {
  const QueryId id =
      open_and_begin(2, {{"query.unopened_timeout_ms", "100"}, {"liveness.timeout_ms", "400"}});
  Shuffle shuffle = open_shuffle(worker(0), spec(id, 7, 8));
  send_now(shuffle, filled(8, 1), 1);
  std::thread other([&] {
    // Worker 1 lives, but has forgotten this stage: it opens another one.
    Shuffle wrong = open_shuffle(worker(1), spec(id, 8, 8, {1}, {1}));
    Batch batch;
    EXPECT_EQ(wrong.receiver()->receive(batch), Outcome::failed);
    wrong.close();
    EXPECT_EQ(end_failed(worker(1), id).code(), Code::query_unopened);
  });
  Batch batch;
  expect_failed(shuffle.receiver()->receive(batch), shuffle, Code::query_unopened,
                {"worker 0", "stage 7", "worker 1", "query.unopened_timeout_ms = 100"});
  shuffle.close();
  EXPECT_EQ(worker(0).end_query(id), Outcome::failed);
  worker(0).release_ownership();
  other.join();
}

}  // namespace
}  // namespace faro::test
