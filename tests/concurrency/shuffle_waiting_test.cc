// Back pressure through the public API: overflow, waiting with and without time limits, and batches that are held.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;

// --- overflow

/// Sends rows of 100 bytes to itself until that ends; how it does.
Outcome send_endlessly(Shuffle& shuffle) {
  Outcome outcome = Outcome::done;
  for (int i = 0; i < 10'000 && outcome == Outcome::done; ++i)
    outcome = shuffle.sender()->send(0, filled(100, i));
  return outcome;
}

TEST_F(ShuffleApi, the_query_that_uses_most_of_a_full_overflow_fails_and_others_go_on) {
  const QueryId big =
      open_and_begin(1, {{"overflow.memory_bytes", "16 KiB"}, {"overflow.file_bytes", "64 KiB"}});
  const QueryId small = session().begin_query();
  Shuffle glutton = open_shuffle(worker(), spec(big, 0, 100));
  Shuffle modest = open_shuffle(worker(), spec(small, 1, 100));
  for (int i = 0; i < 30; ++i) ASSERT_EQ(modest.sender()->send(0, filled(100, i)), Outcome::done);
  expect_failed(send_endlessly(glutton), glutton, Code::overflow_exhausted,
                {"overflow.memory_bytes = 16384", "overflow.file_bytes = 65536"});
  glutton.close();
  EXPECT_EQ(end_failed(worker(), big).code(), Code::overflow_exhausted);

  EXPECT_EQ(modest.sender()->finish(), Outcome::done);
  uint32_t rows = 0;
  Batch batch;
  while (modest.receiver()->receive(batch) == Outcome::done) {
    for (const auto row : batch.each_row()) {
      EXPECT_EQ(std::memcmp(row.data(), filled(100, static_cast<int>(rows)).data(), 100), 0);
      ++rows;
    }
  }
  EXPECT_EQ(rows, 30u) << modest.status().to_string();
  close_and_end(modest, 0, small);
  EXPECT_EQ(session().metrics().overflow_memory_bytes, 0u);
  EXPECT_EQ(session().metrics().overflow_file_bytes, 0u);
}

// Its own ring is full of small frames; one look takes 64 of them.
TEST_F(ShuffleApi,
       a_large_row_to_oneself_finds_room_within_one_call_however_many_frames_lie_there) {
  const QueryId query = open_and_begin(1, {{"ring.bytes", "64 KiB"}});
  Shuffle shuffle = open_shuffle(worker(), spec(query, 0, 0));
  do {
    (void)shuffle.sender()->flush();
  } while (shuffle.sender()->send(0, filled(8, 1), Wait::none()) == Outcome::done);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(shuffle.sender()->send(0, filled(60'000, i), Wait::at_most(milliseconds(0))),
              Outcome::done)
        << i;
}

// What is sent through one of its shuffles leaves whichever of them is flushed.
TEST_F(ShuffleApi, a_flush_starts_the_transfer_of_everything_that_the_worker_has_sent) {
  const QueryId query = open_and_begin(2);
  Shuffle sent = open_shuffle(worker(0), spec(query, 0, 8, {0}, {1}));
  Shuffle flushed = open_shuffle(worker(0), spec(query, 1, 8));
  Shuffle received = open_shuffle(worker(1), spec(query, 0, 8, {0}, {1}));
  Batch batch;
  ASSERT_EQ(sent.sender()->send(0, filled(8, 1)), Outcome::done);
  ASSERT_EQ(received.receiver()->receive(batch, Wait::none()), Outcome::would_wait);
  EXPECT_EQ(flushed.sender()->flush(), Outcome::done);
  EXPECT_EQ(received.receiver()->receive(batch, Wait::none()), Outcome::done);
}

TEST_F(ShuffleApi, a_query_beyond_its_own_limit_fails_where_overflow_has_room_and_others_go_on) {
  const QueryId greedy = open_and_begin(1, {{"overflow.query_limit_bytes", "16 KiB"}});
  const QueryId other = session().begin_query();
  Shuffle glutton = open_shuffle(worker(), spec(greedy, 0, 100));
  Shuffle modest = open_shuffle(worker(), spec(other, 1, 100));
  expect_failed(send_endlessly(glutton), glutton, Code::overflow_exhausted,
                {"overflow.query_limit_bytes = 16384", "node 0"});
  EXPECT_LE(session().metrics().overflow_memory_peak_bytes, 16'384u);
  glutton.close();
  EXPECT_EQ(worker().end_query(greedy), Outcome::failed);
  for (int i = 0; i < 60; ++i) ASSERT_EQ(modest.sender()->send(0, filled(100, i)), Outcome::done);
  EXPECT_EQ(modest.sender()->finish(), Outcome::done);
  EXPECT_EQ(take_rows(modest), 60u) << modest.status().to_string();
  close_and_end(modest, 0, other);
}

TEST_F(ShuffleApi, a_small_query_that_fills_the_last_of_overflow_is_not_the_one_that_fails) {
  const QueryId big =
      open_and_begin(1, {{"overflow.memory_bytes", "16 KiB"}, {"overflow.file_bytes", "0"}});
  const QueryId small = session().begin_query();
  Shuffle glutton = open_shuffle(worker(), spec(big, 0, 100));
  Shuffle modest = open_shuffle(worker(), spec(small, 1, 100));
  // The big one takes nearly all and stops sending in time.
  while (session().metrics().overflow_memory_bytes < 14'000)
    ASSERT_EQ(glutton.sender()->send(0, filled(100, 1)), Outcome::done);
  Outcome outcome = Outcome::done;
  int sent = 0;
  while (sent < 120 && outcome == Outcome::done)
    outcome = modest.sender()->send(0, filled(100, sent++));
  EXPECT_EQ(outcome, Outcome::done) << modest.status().to_string();
  Batch batch;
  expect_failed(glutton.receiver()->receive(batch, Wait::none()), glutton,
                Code::overflow_exhausted);
  glutton.close();
  EXPECT_EQ(worker().end_query(big), Outcome::failed);
  EXPECT_EQ(modest.sender()->finish(), Outcome::done);
  EXPECT_EQ(take_rows(modest), static_cast<uint64_t>(sent));
}

// Rows of a worker for itself: an engine that polls whenever a send would wait keeps overflow
// out of it.
TEST_F(ShuffleApi, an_engine_that_never_waits_feels_back_pressure_from_itself) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 64));
  uint32_t received = 0;
  for (uint32_t sent = 0; sent < 20'000;) {
    const Outcome outcome = shuffle.sender()->send(0, filled(64, 1), Wait::none());
    if (outcome == Outcome::done) {
      ++sent;
      continue;
    }
    ASSERT_EQ(outcome, Outcome::would_wait);
    Batch batch;
    const Outcome polled = shuffle.receiver()->receive(batch, Wait::none());
    if (polled == Outcome::done) received += batch.row_count();
  }
  EXPECT_GT(received, 15'000u);
  EXPECT_LT(session().metrics().overflow_memory_peak_bytes, 64'000u);
}

// --- waiting and holding

TEST_F(ShuffleApi, who_holds_batches_is_told_instead_of_waiting) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  send_now(shuffle, filled(8, 1));
  Batch held = take_batch(shuffle);
  Batch more;
  EXPECT_EQ(worker().metrics().held_frames, 1u);
  EXPECT_EQ(shuffle.receiver()->receive(more), Outcome::holding);
  EXPECT_EQ(shuffle.receiver()->receive(more, Wait::none()), Outcome::holding);
  EXPECT_EQ(worker().wait_until([] { return false; }), Outcome::holding);
  EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::done);
  // Sending is always possible: far more than the ring.
  for (int i = 0; i < 2000; ++i)
    ASSERT_EQ(shuffle.sender()->send(0, filled(8, 2)), Outcome::done) << i;
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::holding);
  ASSERT_TRUE(held.detach().ok());
  EXPECT_EQ(held.rows<uint64_t>().size(), 1u);
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done) << "detached batches hold nothing up";
  EXPECT_EQ(take_rows(shuffle), 2000u);
  std::byte first[8];
  std::memcpy(first, held.bytes().data(), 8);
  EXPECT_EQ(first[0], std::byte{1});
}

// --- claims above a frame, committed below one

// Sends rows of 100 bytes to itself, holding the first, until so much of the overflow is in use; returns how many.
uint64_t fill_overflow(Session& session, Shuffle& shuffle, uint64_t bytes) {
  send_now(shuffle, filled(100, 1));
  Batch held = take_batch(shuffle);
  uint64_t sent = 0;
  for (; session.metrics().overflow_memory_bytes < bytes; ++sent)
    if (shuffle.sender()->send(0, filled(100, 1)) != Outcome::done) break;
  return sent;
}

uint64_t drain(Shuffle& shuffle) {
  uint64_t rows = 0;
  bool finished = false;
  Batch batch;
  for (;;) {
    finished = finished || shuffle.sender()->finish(Wait::none()) == Outcome::done;
    const Outcome outcome = shuffle.receiver()->receive(batch, Wait::none());
    if (outcome != Outcome::done && outcome != Outcome::would_wait) break;
    rows += batch.row_count();
  }
  return rows;
}

// The other query is another worker's: what it has in overflow stays there meanwhile, whatever becomes of it.
TEST_F(ShuffleApi, a_row_that_shrinks_in_its_claim_is_sent_though_ring_and_overflow_are_full) {
  constexpr uint64_t kOverflow = 16 << 10;
  const QueryId small = open_and_begin(1, {{"cluster.workers", "2"},
                                           {"ring.per_lane", "1"},
                                           {"overflow.memory_bytes", std::to_string(kOverflow)},
                                           {"overflow.file_bytes", "0"}});
  const QueryId big = session().begin_query();
  Shuffle modest = open_shuffle(worker(0), spec(small, 0, 0, {0}, {0}));
  Shuffle glutton = open_shuffle(worker(1), spec(big, 0, 100, {1}, {1}));
  send_now(modest, filled(10, 1));
  Batch held = take_batch(modest);
  // The ring is full; then the other query takes most of the overflow, and the claim the rest of it.
  uint64_t sent = 0;
  for (; session().metrics().overflow_memory_bytes == 0; ++sent)
    ASSERT_EQ(modest.sender()->send(0, filled(100, 2)), Outcome::done);
  (void)modest.sender()->flush();
  ASSERT_EQ(worker(0).wait_until([] { return false; }, Wait::none()), Outcome::holding)
      << "all that came is seen";
  const uint64_t sent_by_glutton = fill_overflow(session(), glutton, kOverflow - (4 << 10));
  const uint64_t left = kOverflow - session().metrics().overflow_memory_bytes;
  RowClaim claim;
  ASSERT_EQ(modest.sender()->claim(0, left - 512, claim), Outcome::done)
      << modest.status().to_string();
  ASSERT_GT(claim.data().size(), 1024u) << "no room for a frame, which has 1 KiB, is left";
  std::fill(claim.data().begin(), claim.data().end(), std::byte{2});
  EXPECT_TRUE(claim.commit(100).ok());
  held.release();
  EXPECT_EQ(drain(modest), sent + 1);
  EXPECT_EQ(drain(glutton), sent_by_glutton) << glutton.status().to_string();
  modest.close(), glutton.close();
  for (uint32_t w = 0; w < 2; ++w) {
    EXPECT_NE(worker(w).end_query(small, Wait::none()), Outcome::failed);
    EXPECT_NE(worker(w).end_query(big, Wait::none()), Outcome::failed);
  }
  EXPECT_EQ(session().metrics().overflow_memory_bytes, 0u);
}

// Nobody receives meanwhile: a commit that waited would hang.
TEST_F(ShuffleApi, a_commit_does_not_wait_though_the_ring_is_full) {
  const QueryId id = open_and_begin(1, {{"ring.per_lane", "1"}, {"cluster.workers", "2"}});
  Shuffle sender = open_shuffle(worker(0), spec(id, 0, 0, {0}, {1}));
  Shuffle receiver = open_shuffle(worker(1), spec(id, 0, 0, {0}, {1}));
  // Frames of 18 and 19 rows of 48 bytes fill the ring, of 4096 bytes with OPEN's 64, to the last one.
  int sent = 0;
  while (sender.sender()->send(0, filled(48, sent), Wait::none()) == Outcome::done) ++sent;
  RowClaim claim;
  ASSERT_EQ(sender.sender()->claim(0, 3000, claim, Wait::none()), Outcome::done);
  std::fill(claim.data().begin(), claim.data().end(), static_cast<std::byte>(sent));
  EXPECT_TRUE(claim.commit(0).ok()) << "the smallest there is";
  EXPECT_EQ(sender.sender()->claim(0, 3000, claim, Wait::none()), Outcome::would_wait)
      << "one such row waits for room in a ring at a time";
  std::vector<size_t> lengths;
  Batch batch;
  bool finished = false;
  for (Outcome outcome = Outcome::done; outcome != Outcome::end_of_stream;) {
    finished = finished || sender.sender()->finish(Wait::none()) == Outcome::done;
    outcome = receiver.receiver()->receive(batch, Wait::none());
    ASSERT_NE(outcome, Outcome::failed);
    for (const auto row : batch.each_row()) lengths.push_back(row.size());
  }
  std::vector<size_t> expected(static_cast<size_t>(sent), 48);
  expected.push_back(0);
  EXPECT_EQ(lengths, expected);
}

TEST_F(ShuffleApi, a_deadline_changes_nothing) {
  const QueryId id = open_and_begin(2);
  Shuffle shuffle = open_shuffle(worker(0), spec(id, 0, 8));
  Batch batch;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(shuffle.receiver()->receive(batch, Wait::at_most(milliseconds(20))), Outcome::deadline);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(20));
  EXPECT_EQ(shuffle.receiver()->receive_from(1, batch, Wait::at_most(milliseconds(0))),
            Outcome::deadline);
  EXPECT_EQ(worker(0).wait_until([] { return false; }, Wait::at_most(milliseconds(1))),
            Outcome::deadline);
  // Worker 1 has not opened: its ring fills, and then sending cannot go on.
  uint64_t sent = 0;
  Outcome outcome;
  while ((outcome = shuffle.sender()->send(1, filled(8, 1), Wait::at_most(milliseconds(5)))) ==
             Outcome::done &&
         sent < 100'000)
    ++sent;
  EXPECT_EQ(outcome, Outcome::deadline);
  EXPECT_EQ(worker(0).end_query(id, Wait::none()), Outcome::failed) << "the shuffle is open";
  std::thread other([&] {
    Shuffle receiver = open_shuffle(worker(1), spec(id, 0, 8));
    EXPECT_EQ(receiver.sender()->finish(), Outcome::done);
    Batch got;
    EXPECT_EQ(take_rows(receiver), sent)
        << "what met a deadline was not sent, and everything else was";
    close_and_end(receiver, 1, id);
  });
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  (void)take_rows(shuffle);
  close_and_end(shuffle, 0, id);
  worker(0).release_ownership();
  other.join();
}

TEST(Wait, is_forever_where_a_limit_is_beyond_all_time) {
  EXPECT_TRUE(Wait::at_most(milliseconds::max()).is_forever());
  EXPECT_TRUE(Wait::at_most(std::chrono::hours::max()).is_forever());
  EXPECT_TRUE(Wait::at_most(std::chrono::nanoseconds::max()).is_forever());
  EXPECT_LT(Wait::at_most(std::chrono::hours::min()).limit().count(), 0);
  EXPECT_FALSE(Wait::at_most(std::chrono::nanoseconds::min()).is_none());
  EXPECT_EQ(Wait::at_most(milliseconds(5)).limit(), std::chrono::microseconds(5000));
}

TEST_F(ShuffleApi, a_negative_time_limit_is_refused) {
  constexpr Wait kNegative = Wait::at_most(milliseconds(-1));
  const QueryId id = open_and_begin(2);
  Shuffle shuffle = open_shuffle(worker(0), spec(id, 0, 8));
  Batch batch;
  expect_failed(shuffle.receiver()->receive(batch, kNegative), shuffle, Code::invalid_argument,
                {"worker 0", "-1000000 ns"});
  expect_failed(worker(0).wait_until([] { return false; }, kNegative), worker(0),
                Code::invalid_argument);
  (void)shuffle.cancel("seen enough");
  shuffle.close();
  const QueryId other = session().begin_query();
  expect_failed(worker(0).end_query(other, kNegative), worker(0), Code::invalid_argument);
  EXPECT_EQ(worker(0).end_query(other, Wait::at_most(milliseconds(0))), Outcome::deadline)
      << "worker 1 has not ended it, and what was refused has ended nothing";
  EXPECT_EQ(session().await_node(1, kNegative).code(), Code::invalid_argument);
}

// --- waits do not nest

TEST_F(ShuffleApi, a_wait_in_the_condition_of_another_one_fails_and_that_one_goes_on) {
  const QueryId id = open_and_begin(2);
  Shuffle shuffle = open_shuffle(worker(0), spec(id, 0, 8, {1}, {0}));
  Shuffle sender = open_shuffle(worker(0), spec(id, 1, 8, {0}, {1}));
  int looks = 0;
  const auto nested = [&] {
    ++looks;
    Batch batch;
    expect_failed(shuffle.receiver()->receive(batch, Wait::at_most(milliseconds(1))), shuffle,
                  Code::wrong_state, {"worker 0", "condition"});
    EXPECT_EQ(sender.sender()->finish(Wait::at_most(milliseconds(1))), Outcome::failed);
    expect_failed(worker(0).wait_until([] { return true; }, Wait::at_most(milliseconds(1))),
                  worker(0), Code::wrong_state);
    EXPECT_EQ(end_failed(worker(0), session().begin_query()).code(), Code::wrong_state);
    EXPECT_EQ(shuffle.receiver()->receive(batch, Wait::none()), Outcome::would_wait)
        << "what does not wait is allowed";
    EXPECT_EQ(worker(0).wait_until([] { return true; }, Wait::none()), Outcome::done);
    EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::failed) << "still inside";
    return looks == 3;
  };
  EXPECT_EQ(worker(0).wait_until(nested), Outcome::done);
  EXPECT_EQ(looks, 3) << "the outer wait ends by its own condition";
  Batch batch;
  EXPECT_EQ(shuffle.receiver()->receive(batch, Wait::at_most(milliseconds(1))), Outcome::deadline)
      << "outside it waits again";
}

TEST_F(ShuffleApi, a_wake_up_ends_a_wait_for_a_condition_at_once) {
  open(1, {{"wait.sleep_ms", "1000"}});
  std::atomic<bool> ready{false};
  std::thread other([&] {
    until_asleep(worker());
    ready = true;
    worker().wake();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(worker().wait_until([&] { return ready.load(); }), Outcome::done);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(800));
  other.join();
}

// Over TCP a read position waits as long as its sender cannot be waiting for it. That changes with
// what arrives: here the sender has no room for its third row of stage 1 (a pad and a frame), while
// less than half the ring lies unread, so that nothing is spilled either.
TEST_F(ShuffleApi, what_was_released_is_told_when_the_ring_fills_up_later) {
  const QueryId id = open_and_begin(2, {{"ring.per_lane", "1"}, {"transfer.threshold_bytes", "0"}});
  Shuffle wanted_sender = open_shuffle(worker(0), spec(id, 0, 0, {0}, {1}));
  Shuffle other_sender = open_shuffle(worker(0), spec(id, 1, 0, {0}, {1}));
  Shuffle wanted = open_shuffle(worker(1), spec(id, 0, 0, {0}, {1}));
  Shuffle other = open_shuffle(worker(1), spec(id, 1, 0, {0}, {1}));
  // A frame of that many bytes in the ring: its header, the row's length, the row.
  const auto row = [](size_t frame_bytes) { return filled(frame_bytes - 20, 1); };
  const auto pass = [&](Shuffle& from, Shuffle& to, size_t frame_bytes) {
    send_now(from, row(frame_bytes));
    take_batch(to);
  };
  // Ring of 4096. With the two OPEN of 64 bytes each: positions 128, 192, …
  pass(other_sender, other, 64);
  for (const size_t frame_bytes : {896, 1024, 1024, 960, 960, 128})
    pass(wanted_sender, wanted, frame_bytes);
  worker(1).release_ownership();
  const uint64_t sleeps = worker(1).metrics().sleeps;
  std::thread receiver([&] {
    Batch batch;
    EXPECT_EQ(wanted.receiver()->receive(batch, Wait::at_most(std::chrono::seconds(20))),
              Outcome::done);
    worker(1).release_ownership();
  });
  while (worker(1).metrics().sleeps == sleeps) std::this_thread::yield();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(other_sender.sender()->send(0, row(1024), Wait::at_most(std::chrono::seconds(10))),
              Outcome::done)
        << i;
  EXPECT_EQ(wanted_sender.sender()->send(0, row(64), Wait::at_most(std::chrono::seconds(10))),
            Outcome::done);
  (void)wanted_sender.sender()->flush();
  receiver.join();
  const std::vector<LaneMetrics> lanes = session(0).metrics().lanes;
  EXPECT_TRUE(std::any_of(lanes.begin(), lanes.end(), [](const LaneMetrics& lane) {
    return lane.receiver == 1 && lane.no_room > 0;
  }));
}

// A frame takes as much as the threshold asks for, half the ring, if there is room: 163 rows of 100 bytes, or,
// behind OPEN, 162. With their header they are 84 bytes short of the threshold, or 120. A frame more that
// is cut there would have one row, and cost what a full one does.
TEST_F(ShuffleApi, full_frames_of_wide_rows_reach_the_threshold) {
  const QueryId id =
      open_and_begin(1, {{"ring.bytes", "32 KiB"}, {"transfer.threshold_bytes", "16 KiB"}});
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 100));
  uint64_t rows = 0;
  while (shuffle.sender()->send(0, filled(100, 1), Wait::none()) == Outcome::done) ++rows;
  uint64_t frames = 0;
  for (const LaneMetrics& lane : session().metrics().lanes) frames += lane.frames_sent;
  EXPECT_GE(rows, 162 + 163u);
  EXPECT_EQ(frames, 1 + 2u) << "OPEN and the rows";
}

// A flush leaves the frames behind it askew in the ring: one ends short at its end. If that waited for the threshold, the
// next one, at the start, would end where the two reach it, and so in every lap.
TEST_F(ShuffleApi,
       a_frame_that_a_flush_cuts_short_makes_others_short_only_until_the_end_of_the_ring) {
  const QueryId id =
      open_and_begin(1, {{"ring.bytes", "32 KiB"}, {"transfer.threshold_bytes", "16 KiB"}});
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  const auto transfers = [&] {
    uint64_t started = 0;
    for (const LaneMetrics& lane : session().metrics().lanes) started += lane.transfers;
    return started;
  };
  Batch batch;
  std::vector<uint32_t> frames;
  uint64_t seen = 0;
  const auto take = [&] {
    if (transfers() == seen) return;
    seen = transfers();
    ASSERT_EQ(shuffle.receiver()->receive(batch, Wait::none()), Outcome::done);
    frames.push_back(batch.row_count());
    batch.release();
  };
  for (int row = 0; row < 640; ++row)
    ASSERT_EQ(shuffle.sender()->send(0, filled(8, row), Wait::none()), Outcome::done);
  ASSERT_EQ(shuffle.sender()->flush(), Outcome::done);
  take();
  for (int row = 0; row < 20'000; ++row) {
    ASSERT_EQ(shuffle.sender()->send(0, filled(8, row), Wait::none()), Outcome::done)
        << row << " after " << testing::PrintToString(frames);
    take();
  }
  ASSERT_GE(frames.size(), 8u);
  EXPECT_EQ(frames[0], 640u);
  for (size_t frame = 3; frame < frames.size(); ++frame) EXPECT_EQ(frames[frame], 2046u) << frame;
}

// Worker 0 has larger rings to itself than to the workers of the other node. A row that fits into a frame only there is a large
// one for all, and takes of each ring a quarter at a time.
TEST_F(ShuffleApi, a_row_goes_to_receivers_with_larger_rings_and_to_others) {
  cluster_ = std::make_unique<SessionCluster>(
      2, SettingList{{"transport", "tcp"}, {"cluster.workers", "1,2"}});
  ASSERT_TRUE(is_ok(cluster_->status()));
  const QueryId id = session().begin_query();
  std::vector<Shuffle> shuffles;
  for (uint32_t w = 0; w < 3; ++w) shuffles.push_back(open_shuffle(worker(w), spec(id, 0, 12'000)));
  for (int row = 0; row < 2; ++row) {  // the rings have room for them
    ASSERT_EQ(shuffles[0].sender()->broadcast(filled(12'000, row)), Outcome::done);
    for (Shuffle& shuffle : shuffles) {
      Batch batch;
      ASSERT_EQ(shuffle.receiver()->receive(batch), Outcome::done);
      ASSERT_EQ(batch.row_count(), 1u);
      EXPECT_TRUE(std::ranges::equal(*batch.each_row().begin(), filled(12'000, row)));
    }
  }
  for (const LaneMetrics& lane : session().metrics().lanes) {
    if (lane.sender != 0 || lane.frames_sent == 0) continue;
    const uint64_t frames_of_row = lane.receiver == 0 ? 1 : 2;
    EXPECT_EQ(lane.frames_sent, 1 + 2 * frames_of_row)
        << "OPEN and the rows, to worker " << lane.receiver;
  }
}

}  // namespace
}  // namespace faro::test
