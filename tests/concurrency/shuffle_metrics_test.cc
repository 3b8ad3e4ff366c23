// What a shuffle counts, through the public API, and how long that is kept.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;

// One that is not there has counted nothing.
SentMetrics sent_to(const ShuffleMetrics& metrics, uint32_t receiver) {
  for (const SentMetrics& sent : metrics.sent)
    if (sent.receiver == receiver) return sent;
  ADD_FAILURE() << "no receiver " << receiver;
  return {};
}
ReceivedMetrics received_from(const ShuffleMetrics& metrics, uint32_t sender) {
  for (const ReceivedMetrics& received : metrics.received)
    if (received.sender == sender) return received;
  ADD_FAILURE() << "no sender " << sender;
  return {};
}

Outcome send_rows(Shuffle& shuffle, uint32_t receiver, size_t bytes, int count) {
  Outcome outcome = Outcome::done;
  for (int i = 0; i < count && outcome == Outcome::done; ++i)
    outcome = shuffle.sender()->send(receiver, filled(bytes, i));
  return outcome;
}

TEST_F(ShuffleApi, rows_and_bytes_count_by_receiver_and_by_sender) {
  const QueryId id = open_and_begin(2);
  cluster_->run_workers([&](uint32_t w) {
    // Rows of a fixed width; the first receiver named is worker 1.
    Shuffle fixed = open_shuffle(worker(w), spec(id, 0, 8, {}, {1, 0}));
    EXPECT_EQ(send_rows(fixed, 0, 8, 1000), Outcome::done);
    EXPECT_EQ(send_rows(fixed, 1, 8, 10 * static_cast<int>(w + 1)), Outcome::done);
    EXPECT_EQ(fixed.sender()->finish(), Outcome::done);
    (void)take_rows(fixed);
    const ShuffleMetrics metrics = fixed.metrics();
    EXPECT_TRUE(metrics.query == id && metrics.stage == 0 && metrics.worker == w);
    ASSERT_EQ(metrics.sent.size(), 2u);
    EXPECT_EQ(metrics.sent[0].receiver, 0u) << "worker 1: by index";
    EXPECT_EQ(metrics.sent[0].rows, 1000u);
    EXPECT_EQ(metrics.sent[0].bytes, 8000u);
    EXPECT_GT(metrics.sent[0].frames, metrics.sent[1].frames);
    EXPECT_EQ(metrics.sent[1].rows, 10 * (w + 1));
    EXPECT_EQ(metrics.sent[1].rows_out_overflow, 0u);
    ASSERT_EQ(metrics.received.size(), 2u);
    for (uint32_t sender = 0; sender < 2; ++sender) {
      EXPECT_EQ(metrics.received[sender].sender, sender);
      const uint64_t rows = w == 1 ? 1000 : 10 * (sender + 1);
      EXPECT_EQ(metrics.received[sender].rows, rows);
      EXPECT_EQ(metrics.received[sender].bytes, 8 * rows);
      EXPECT_GT(metrics.received[sender].batches, 0u);
    }
    // With a length each, and one that is larger than a frame.
    Shuffle texts = open_shuffle(worker(w), spec(id, 1, 0, {0}, {1}));
    if (w == 0) {
      EXPECT_EQ(send_rows(texts, 0, 100, 20), Outcome::done);
      EXPECT_EQ(send_rows(texts, 0, 50'000, 1), Outcome::done);
      EXPECT_EQ(texts.sender()->finish(), Outcome::done);
    } else {
      (void)take_rows(texts);
    }
    const ShuffleMetrics large = texts.metrics();
    EXPECT_EQ(large.sent.size(), 1 - w);
    EXPECT_EQ(large.received.size(), w);
    const uint64_t rows = w == 0 ? sent_to(large, 0).rows : received_from(large, 0).rows;
    const uint64_t bytes = w == 0 ? sent_to(large, 0).bytes : received_from(large, 0).bytes;
    EXPECT_EQ(rows, 21u);
    EXPECT_EQ(bytes, 20 * 104u + 50'000u);
    fixed.close();
    close_and_end(texts, w, id);
  });
}

TEST_F(ShuffleApi, metrics_stay_with_the_handle_and_with_the_query_until_it_has_ended_everywhere) {
  const QueryId id = open_and_begin(2);
  const QueryId other = session().begin_query();
  Shuffle kept = open_shuffle(worker(0), spec(id, 0, 8, {0}, {1}));
  {
    Shuffle gone = open_shuffle(worker(0), spec(id, 1, 8, {0}, {1}));
    EXPECT_EQ(send_rows(gone, 0, 8, 7), Outcome::done);
    EXPECT_EQ(gone.sender()->finish(), Outcome::done);
  }
  EXPECT_EQ(send_rows(kept, 0, 8, 3), Outcome::done);
  EXPECT_EQ(kept.sender()->finish(), Outcome::done);
  kept.close();
  EXPECT_EQ(sent_to(kept.metrics(), 0).rows, 3u);

  // Whoever it asks, and whether they are closed.
  std::vector<ShuffleMetrics> shuffles;
  std::thread([&] { shuffles = session(0).metrics(id).shuffles; }).join();
  ASSERT_EQ(shuffles.size(), 2u);
  EXPECT_EQ(shuffles[0].stage, 0u);
  EXPECT_EQ(sent_to(shuffles[0], 0).rows, 3u);
  EXPECT_EQ(shuffles[1].stage, 1u);
  EXPECT_EQ(sent_to(shuffles[1], 0).rows, 7u);
  EXPECT_EQ(session(0).metrics(other).shuffles.size(), 0u);
  EXPECT_EQ(session(0).metrics().shuffles.size(), 0u);

  // The issuer's own part is over, but that of the other node is not.
  EXPECT_EQ(worker(0).end_query(id, Wait::none()), Outcome::would_wait);
  EXPECT_EQ(session(0).metrics(id).shuffles.size(), 2u);
  EXPECT_EQ(session(1).metrics(id).shuffles.size(), 0u) << "nothing was opened there";
  for (uint32_t stage = 0; stage < 2; ++stage) {
    Shuffle receiving = open_shuffle(worker(1), spec(id, stage, 8, {0}, {1}));
    EXPECT_EQ(take_rows(receiving), stage == 0 ? 3u : 7u);
    EXPECT_EQ(received_from(session(1).metrics(id).shuffles.back(), 0).rows, stage == 0 ? 3u : 7u);
  }
  EXPECT_EQ(session(1).metrics(id).shuffles.size(), 2u);
  EXPECT_EQ(worker(1).end_query(id), Outcome::done);
  EXPECT_EQ(session(1).metrics(id).shuffles.size(), 0u);
  EXPECT_EQ(worker(0).end_query(id), Outcome::done);
  while (!session(0).metrics(id).shuffles.empty()) std::this_thread::yield();

  EXPECT_EQ(sent_to(kept.metrics(), 0).rows, 3u) << "the handle lives";
  const Shuffle moved = std::move(kept);
  EXPECT_EQ(sent_to(moved.metrics(), 0).rows, 3u);
  cluster_.reset();
  EXPECT_EQ(sent_to(moved.metrics(), 0).rows, 3u);
  EXPECT_EQ(Shuffle().metrics().sent.size(), 0u);
}

TEST_F(ShuffleApi, calls_that_are_blocked_on_room_and_on_rows_count_with_their_time) {
  const QueryId id = open_and_begin(2);
  Shuffle shuffle = open_shuffle(worker(0), spec(id, 0, 100));
  Batch batch;
  EXPECT_EQ(shuffle.receiver()->receive(batch, Wait::none()), Outcome::would_wait);
  EXPECT_EQ(shuffle.metrics().blocked_on_rows, 1u);
  EXPECT_EQ(shuffle.metrics().blocked_on_rows_ns, 0u) << "it has not waited";
  EXPECT_EQ(shuffle.receiver()->receive(batch, Wait::at_most(milliseconds(2))), Outcome::deadline);
  EXPECT_EQ(shuffle.metrics().blocked_on_rows, 2u);
  EXPECT_GE(shuffle.metrics().blocked_on_rows_ns, 2'000'000u);
  EXPECT_EQ(shuffle.metrics().blocked_on_room, 0u);
  // By a condition of the engine's own.
  const uint64_t ns = shuffle.metrics().blocked_on_rows_ns;
  const auto has_rows = [&] {
    return shuffle.receiver()->receive(batch, Wait::none()) != Outcome::would_wait;
  };
  EXPECT_EQ(worker(0).wait_until(has_rows, Wait::at_most(milliseconds(2))), Outcome::deadline);
  EXPECT_EQ(shuffle.metrics().blocked_on_rows, 3u) << "it is one wait, however often it tries";
  EXPECT_GE(shuffle.metrics().blocked_on_rows_ns - ns, 2'000'000u);
  // By an event loop.
  ASSERT_TRUE(worker(0).ready_descriptor().ok());
  EXPECT_EQ(worker(0).arm(has_rows, Progress::call), Outcome::would_wait);
  const uint64_t armed_ns = shuffle.metrics().blocked_on_rows_ns;
  EXPECT_EQ(shuffle.metrics().blocked_on_rows, 4u);
  std::this_thread::sleep_for(milliseconds(1));
  // After a wake-up that brought no rows.
  EXPECT_EQ(worker(0).arm(has_rows, Progress::call), Outcome::would_wait);
  EXPECT_EQ(shuffle.metrics().blocked_on_rows, 4u) << "it is the same wait";
  EXPECT_EQ(shuffle.sender()->send(0, filled(100, 1)), Outcome::done);
  EXPECT_EQ(shuffle.sender()->flush(), Outcome::done);
  EXPECT_EQ(worker(0).arm(has_rows, Progress::call), Outcome::done);
  EXPECT_GE(shuffle.metrics().blocked_on_rows_ns - armed_ns, 1'000'000u);
  batch.release();

  // Nobody takes what worker 1 is sent.
  Outcome outcome = Outcome::done;
  while (outcome == Outcome::done)
    outcome = shuffle.sender()->send(1, filled(100, 1), Wait::none());
  EXPECT_EQ(outcome, Outcome::would_wait);
  EXPECT_EQ(shuffle.metrics().blocked_on_room, 1u);
  EXPECT_EQ(shuffle.metrics().blocked_on_room_ns, 0u);
  EXPECT_EQ(shuffle.sender()->send(1, filled(100, 1), Wait::at_most(milliseconds(2))),
            Outcome::deadline);
  const ShuffleMetrics metrics = shuffle.metrics();
  EXPECT_EQ(metrics.blocked_on_room, 2u);
  EXPECT_GE(metrics.blocked_on_room_ns, 2'000'000u);
  EXPECT_EQ(metrics.blocked_on_rows, 4u);
  EXPECT_EQ(sent_to(metrics, 0).no_room, 0u);
  EXPECT_GE(sent_to(metrics, 1).no_room, 2u) << "whose fault it is";
}

TEST_F(ShuffleApi, rows_that_go_by_way_of_overflow_count_where_they_do) {
  const QueryId id = open_and_begin(1, {{"ring.per_lane", "1"}});
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 100));
  send_now(shuffle, filled(100, 1));
  Batch held = take_batch(shuffle);
  // The ring is full, and the worker holds a batch: rows wait in the outgoing overflow.
  EXPECT_EQ(send_rows(shuffle, 0, 100, 200), Outcome::done);
  (void)shuffle.sender()->flush();
  held.release();
  const SentMetrics queued = sent_to(shuffle.metrics(), 0);
  EXPECT_GT(queued.rows_out_overflow, 100u);
  EXPECT_EQ(queued.bytes_out_overflow, 100 * queued.rows_out_overflow);
  EXPECT_EQ(received_from(shuffle.metrics(), 0).rows_spilled, 0u);
  // A call that waits makes room by itself: what lies in the ring is spilled.
  EXPECT_EQ(send_rows(shuffle, 0, 100, 200), Outcome::done);
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  EXPECT_EQ(take_rows(shuffle), 400u);
  const ShuffleMetrics metrics = shuffle.metrics();
  const ReceivedMetrics received = received_from(metrics, 0);
  EXPECT_GT(received.rows_spilled, 0u);
  EXPECT_LT(received.rows_spilled, 401u);
  EXPECT_EQ(received.bytes_spilled, 100 * received.rows_spilled);
  EXPECT_EQ(received.rows, 401u);
  EXPECT_EQ(sent_to(metrics, 0).rows, 401u);
  EXPECT_EQ(sent_to(metrics, 0).bytes, 40'100u);
}

TEST_F(ShuffleApi, rows_that_are_spilled_before_their_shuffle_is_opened_count_in_it) {
  const QueryId id = open_and_begin(2);
  Shuffle sending = open_shuffle(worker(0), spec(id, 0, 100, {0}, {1}));
  uint64_t sent = 0;
  while (sending.sender()->send(0, filled(100, 1), Wait::none()) == Outcome::done) ++sent;
  // Worker 1 waits for another shuffle, and makes room.
  Shuffle other = open_shuffle(worker(1), spec(id, 1, 100, {0}, {1}));
  Batch batch;
  while (worker(1).metrics().frames_spilled == 0)
    ASSERT_EQ(other.receiver()->receive(batch, Wait::at_most(milliseconds(1))), Outcome::deadline);
  EXPECT_EQ(sending.sender()->finish(), Outcome::done);
  Shuffle receiving = open_shuffle(worker(1), spec(id, 0, 100, {0}, {1}));
  EXPECT_EQ(take_rows(receiving), sent);
  const ReceivedMetrics received = received_from(receiving.metrics(), 0);
  EXPECT_EQ(received.rows, sent);
  EXPECT_GT(received.rows_spilled, 0u);
  EXPECT_EQ(received.bytes_spilled, 100 * received.rows_spilled);
  EXPECT_EQ(received_from(other.metrics(), 0).rows_spilled, 0u) << "of another shuffle";
}

TEST_F(ShuffleApi, rows_that_were_dropped_are_not_among_those_sent) {
  const QueryId id = open_and_begin(1, {{"ring.per_lane", "1"}});
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 100));
  send_now(shuffle, filled(100, 1));
  Batch held = take_batch(shuffle);
  EXPECT_EQ(send_rows(shuffle, 0, 100, 200), Outcome::done);
  (void)shuffle.sender()->flush();
  const uint64_t queued = sent_to(shuffle.metrics(), 0).rows_out_overflow;
  const uint64_t sent = sent_to(shuffle.metrics(), 0).rows;
  EXPECT_EQ(shuffle.receiver()->stop(), Outcome::done);
  held.release();
  // A row may still be written into an open frame. A flush learns of the stop, and drops what is queued.
  (void)shuffle.sender()->flush();
  EXPECT_EQ(shuffle.sender()->send(0, filled(100, 1)), Outcome::stopped);
  EXPECT_EQ(sent_to(shuffle.metrics(), 0).rows, sent - queued);
  EXPECT_EQ(sent_to(shuffle.metrics(), 0).bytes, 100 * (sent - queued));
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
}

}  // namespace
}  // namespace faro::test
