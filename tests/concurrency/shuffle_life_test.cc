// Lifetimes through the public API: claims, opening and closing, and the end of the session. What needs more than one
// thread has them.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

// --- claims

TEST_F(ShuffleApi, a_claim_is_the_only_one_and_closes_its_ring_to_others) {
  const QueryId id = open_and_begin(1, {{"ring.per_lane", "1"}});
  Shuffle a = open_shuffle(worker(), spec(id, 0, 0));
  Shuffle b = open_shuffle(worker(), spec(id, 1, 0));
  RowClaim claim;
  ASSERT_EQ(a.sender()->claim(0, 100, claim, Wait::none()), Outcome::done);
  RowClaim second;
  expect_failed(b.sender()->claim(0, 100, second, Wait::none()), b, Code::wrong_state);
  EXPECT_EQ(b.sender()->send(0, filled(10, 1), Wait::none()), Outcome::failed) << "the same ring";
  EXPECT_EQ(b.status().code(), Code::wrong_state);
  EXPECT_EQ(a.sender()->send(0, filled(10, 1), Wait::none()), Outcome::failed);
  EXPECT_EQ(a.sender()->finish(Wait::none()), Outcome::failed);
  std::memset(claim.data().data(), 7, 100);
  EXPECT_EQ(claim.commit(101).code(), Code::invalid_argument);
  EXPECT_TRUE(claim.commit(50).ok());
  ASSERT_EQ(a.sender()->claim(0, 100, claim, Wait::none()), Outcome::done);
  claim.abort();
  claim.abort();
  EXPECT_EQ(b.sender()->send(0, filled(10, 1), Wait::none()), Outcome::done);
  EXPECT_EQ(a.sender()->finish(), Outcome::done);
  Batch batch = take_batch(a);
  EXPECT_EQ(batch.row_count(), 1u);
  EXPECT_EQ((*batch.each_row().begin()).size(), 50u);
  batch.release();
  EXPECT_EQ(a.receiver()->receive(batch), Outcome::end_of_stream);
}

// Rows of the same ring that are sent meanwhile lie in an open frame when it is committed.
TEST_F(ShuffleApi, a_claim_above_a_frame_is_overtaken_by_other_rows_and_damages_none) {
  constexpr size_t kLarge = 100'000;
  const QueryId id = open_and_begin(1, {{"ring.per_lane", "1"}});
  Shuffle a = open_shuffle(worker(), spec(id, 0, 0));
  Shuffle b = open_shuffle(worker(), spec(id, 1, 0));
  RowClaim claim;
  ASSERT_EQ(a.sender()->claim(0, kLarge, claim, Wait::none()), Outcome::done);
  EXPECT_EQ(a.sender()->send(0, filled(10, 1), Wait::none()), Outcome::done);
  EXPECT_EQ(b.sender()->send(0, filled(20, 2), Wait::none()), Outcome::done);
  std::memset(claim.data().data(), 7, kLarge);
  EXPECT_TRUE(claim.commit().ok());
  const auto expect_rows = [](Shuffle& shuffle, const std::vector<std::vector<std::byte>>& rows) {
    std::vector<std::vector<std::byte>> got;
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      for (const std::span<const std::byte> row : batch.each_row())
        got.emplace_back(row.begin(), row.end());
    }
    EXPECT_EQ(got, rows);
  };
  EXPECT_EQ(a.sender()->finish(), Outcome::done);
  EXPECT_EQ(b.sender()->finish(), Outcome::done);
  expect_rows(a, {filled(10, 1), filled(kLarge, 7)});
  expect_rows(b, {filled(20, 2)});
}

TEST_F(ShuffleApi, a_claim_outlives_its_shuffle_and_session) {
  for (const size_t size : {size_t{100}, size_t{100'000}}) {
    for (const bool commit : {false, true}) {
      const QueryId id = open_and_begin(1);
      RowClaim claim;
      {
        Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 0));
        ASSERT_EQ(shuffle.sender()->claim(0, size, claim), Outcome::done);
      }
      if (commit) {
        EXPECT_EQ(claim.commit().code(), Code::wrong_state) << "the shuffle was closed";
      } else {
        cluster_.reset();
      }
      claim.abort();
    }
  }
}

// --- opening and closing

// The network thread may have borrowed the worker when the handle goes: Ownership::rest asserts that it has not.
TEST_F(ShuffleApi, a_handle_of_a_part_that_has_failed_goes_while_its_worker_is_at_rest) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  const Status failure(Code::query_failed, "the part has failed");
  (void)worker().end_query(id, failure);
  EXPECT_FALSE(shuffle.is_open());
  shuffle.close();
  EXPECT_TRUE(open_shuffle(worker(), spec(session().begin_query(), 0, 8)).is_open());
}

TEST_F(ShuffleApi, a_stage_is_open_once) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  EXPECT_EQ(worker().open_shuffle(spec(id, 0, 8)).status().code(), Code::invalid_argument);
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done) << "repeatable";
  expect_failed(shuffle.sender()->send(0, filled(8, 1), Wait::none()), shuffle, Code::wrong_state);
  Batch batch;
  EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
  shuffle.close();
  shuffle.close();
  EXPECT_EQ(worker().open_shuffle(spec(id, 0, 8)).status().code(), Code::invalid_argument)
      << "it was closed here: rows for it are dropped";
  EXPECT_EQ(shuffle.sender().status().code(), Code::closed);
  EXPECT_EQ(shuffle.receiver().status().code(), Code::closed);
  EXPECT_EQ(shuffle.cancel("too late").code(), Code::closed);
  EXPECT_EQ(shuffle.status().code(), Code::closed);
  EXPECT_EQ(shuffle.spec().receivers.size(), 0u);
  EXPECT_EQ(ShuffleSender().send(0, filled(8, 1)), Outcome::failed);
  EXPECT_EQ(ShuffleSender().broadcast(filled(8, 1)), Outcome::failed);
  EXPECT_EQ(RowSender<uint64_t>().broadcast_all(std::vector<uint64_t>{1}).outcome, Outcome::failed);
  const std::vector<uint64_t> rows{1};
  const auto itself = [](uint64_t row) { return row; };
  EXPECT_EQ(RowSender<uint64_t>().send_all(std::span(rows), FinalizerHash(), itself).outcome,
            Outcome::failed);
  EXPECT_EQ(RowSender<uint64_t>()
                .write_all(1, FinalizerHash(), itself, [](size_t, std::byte*) {})
                .outcome,
            Outcome::failed);
  EXPECT_EQ(ShuffleSender().status().code(), Code::closed);
  expect_failed(ShuffleReceiver().receive(batch), ShuffleReceiver(), Code::closed);
}

TEST_F(ShuffleApi, slots_are_used_again_for_ever) {
  const QueryId id = open_and_begin(2, {{"shuffle.limit", "3"}});
  cluster_->run_workers([&](uint32_t w) {
    for (uint32_t stage = 0; stage < 60; ++stage) {
      Shuffle shuffle = open_shuffle(worker(w), spec(id, stage, 8));
      ASSERT_EQ(shuffle.sender()->send(1 - w, filled(8, static_cast<int>(stage))), Outcome::done);
      ASSERT_EQ(shuffle.sender()->finish(), Outcome::done);
      Batch batch = take_batch(shuffle);
      EXPECT_EQ(batch.bytes()[0], static_cast<std::byte>(stage));
      batch.release();
      ASSERT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
    }
    EXPECT_EQ(worker(w).metrics().open_shuffles, 0u);
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
}

TEST_F(ShuffleApi, more_shuffles_than_the_limit_are_refused) {
  const QueryId id = open_and_begin(1, {{"shuffle.limit", "2"}});
  Shuffle a = open_shuffle(worker(), spec(id, 0, 8));
  Shuffle b = open_shuffle(worker(), spec(id, 1, 8));
  expect_error(worker().open_shuffle(spec(id, 2, 8)).status(), Code::limit_exceeded,
               {"shuffle.limit = 2"});
  EXPECT_EQ(a.sender()->finish(), Outcome::done);
  (void)a.receiver()->stop();
  a.close();
  EXPECT_TRUE(worker().open_shuffle(spec(id, 2, 8)).ok());
}

TEST_F(ShuffleApi, a_sender_closed_without_finish_cancels_its_query) {
  const QueryId id = open_and_begin(2);
  Shuffle receiver = open_shuffle(worker(1), spec(id, 0, 8, {0}, {1}));
  {
    Shuffle sender = open_shuffle(worker(0), spec(id, 0, 8, {0}, {1}));
    EXPECT_EQ(sender.sender()->send(0, filled(8, 1)), Outcome::done);
  }
  Batch batch;
  expect_failed(receiver.receiver()->receive(batch), receiver, Code::query_cancelled,
                {"worker 0", "stage 0", "without finish"});
}

TEST_F(ShuffleApi, a_session_that_closes_tells_of_a_sender_that_was_closed_without_finish) {
  const QueryId id = open_and_begin(2);
  Shuffle receiver = open_shuffle(worker(1), spec(id, 0, 8, {0}, {1}));
  open_shuffle(worker(0), spec(id, 0, 8, {0}, {1})).close();
  EXPECT_TRUE(is_ok(session(0).close()));
  Batch batch;
  expect_failed(receiver.receiver()->receive(batch), receiver, Code::query_cancelled,
                {"worker 0", "stage 0", "without finish"});
}

TEST_F(ShuffleApi, a_shuffle_that_another_thread_closes_leaves_the_worker_to_its_owner) {
  open(1);
  for (const bool owner_lives : {true, false}) {
    SCOPED_TRACE(owner_lives);
    const QueryId id = session().begin_query();
    Shuffle shuffle;
    const auto open_one = [&] { shuffle = open_shuffle(worker(), spec(id, 0, 8)); };
    if (owner_lives) {
      open_one();
    } else {
      worker().release_ownership();
      std::thread(open_one).join();
      EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::failed);
    }
    EXPECT_EQ(shuffle.sender()->finish(Wait::none()),
              owner_lives ? Outcome::done : Outcome::failed);
    std::thread([&] { shuffle.close(); }).join();
    EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::done)
        << worker().status().to_string();
    // Nor does it own it itself.
    std::thread([&] {
      EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::failed);
    }).join();
  }
}

// FINISH waits in the queue behind what was sent while a batch was held.
TEST_F(ShuffleApi, a_sender_closed_while_its_finish_still_waits_cancels_its_query) {
  const QueryId id = open_and_begin(1, {{"ring.per_lane", "1"}});
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 100));
  send_now(shuffle, filled(100, 1));
  Batch held = take_batch(shuffle);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(shuffle.sender()->send(0, filled(100, 1)), Outcome::done);
  ASSERT_EQ(shuffle.sender()->finish(Wait::none()), Outcome::holding);
  (void)shuffle.receiver()->stop();  // as a receiver it may close
  held.release();
  shuffle.close();
  expect_error(end_failed(worker(), id), Code::query_cancelled, {"without finish"});
}

// --- moving onto itself, and what does not exist

template <typename T>
void move_onto_itself(T& value) {
  T& same = value;  // so that no compiler warns
  value = std::move(same);
}

TEST_F(ShuffleApi, what_is_moved_onto_itself_stays_as_it_is) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  move_onto_itself(shuffle);
  ASSERT_TRUE(shuffle.is_open());
  RowClaim claim;
  ASSERT_EQ(shuffle.sender()->claim(0, 8, claim), Outcome::done);
  move_onto_itself(claim);
  ASSERT_EQ(claim.data().size(), 8u);
  EXPECT_TRUE(claim.commit().ok());
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
  Batch batch = take_batch(shuffle);
  move_onto_itself(batch);
  EXPECT_EQ(batch.row_count(), 1u);
  batch.release();
  EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
  close_and_end(shuffle, 0, id);
}

TEST_F(ShuffleApi, a_worker_that_does_not_exist_refuses_everything) {
  const QueryId id = open_and_begin(1, {{"cluster.workers", "2"}});
  Worker& nobody = session().worker(99);
  EXPECT_EQ(nobody.number(), UINT32_MAX);
  expect_error(nobody.open_shuffle(spec(id, 0, 8)).status(), Code::invalid_argument, {"it has 2"});
  for (const Wait wait : {Wait::forever(), Wait::none()}) {
    EXPECT_EQ(end_failed(nobody, id, Status::Ok(), wait).code(), Code::invalid_argument);
    expect_failed(nobody.wait_until([] { return true; }, wait), nobody, Code::invalid_argument);
  }
  nobody.wake();
  nobody.release_ownership();
  EXPECT_EQ(nobody.metrics().operations, 0u);
  EXPECT_EQ(session().worker(1).number(), 1u);
}

TEST_F(ShuffleApi, a_result_made_from_an_ok_status_is_an_error) {
  const Result<int> nothing = Status::Ok();
  EXPECT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.status().code(), Code::internal_error);
}

TEST_F(ShuffleApi, many_queries_leave_nothing_behind) {
  open(2, {{"cluster.workers", "1,2"}});
  std::vector<QueryId> ids;
  for (int i = 0; i < 200; ++i) ids.push_back(session(i % 2).begin_query());
  cluster_->run_workers([&](uint32_t w) {
    for (size_t i = 0; i < ids.size(); ++i) {
      // Each kind of end: well, cancelled by somebody, a closed sender.
      const bool fails = i % 10 == 9;
      Result<Shuffle> opened =
          worker(w).open_shuffle(spec(ids[i], static_cast<uint32_t>(i % 5), 0));
      EXPECT_TRUE(opened.ok() || fails) << opened.status().to_string();
      Shuffle shuffle;
      if (opened.ok()) shuffle = std::move(*opened);
      for (uint32_t r = 0; opened.ok() && r < 3; ++r) {
        const Outcome sent = shuffle.sender()->send(r, filled(i % 50, 1));
        EXPECT_TRUE(sent == Outcome::done || fails);
      }
      if (fails && i % 3 == w) (void)shuffle.cancel("a test");
      if (!fails) {
        EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
        (void)take_rows(shuffle);
      }
      shuffle.close();
      EXPECT_EQ(worker(w).end_query(ids[i]), fails ? Outcome::failed : Outcome::done) << i;
    }
  });
  for (uint32_t n = 0; n < 2; ++n) {
    const SessionMetrics metrics = session(n).metrics();
    EXPECT_EQ(metrics.overflow_memory_bytes, 0u);
    EXPECT_EQ(metrics.queries_failed, 20u);
    EXPECT_EQ(session(n).worker(0).open_shuffle(spec(ids[7], 0, 8)).status().code(),
              Code::query_ended);
    session(n).worker(0).release_ownership();
  }
  expect_working();
}

// --- threads and the session's end

TEST_F(ShuffleApi, another_thread_is_refused_until_the_worker_is_handed_over) {
  const QueryId id = open_and_begin(1);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  std::thread([&] {
    EXPECT_EQ(shuffle.sender()->send(0, filled(8, 1), Wait::none()), Outcome::failed);
    EXPECT_EQ(worker().open_shuffle(spec(id, 1, 8)).status().code(), Code::wrong_state);
    EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::failed);
    expect_error(end_failed(worker(), id), Code::wrong_state, {"worker 0", "release_ownership"});
  }).join();
  EXPECT_EQ(shuffle.sender()->send(0, filled(8, 1), Wait::none()), Outcome::done);
  worker().release_ownership();
  std::thread([&] {
    EXPECT_EQ(shuffle.sender()->send(0, filled(8, 2), Wait::none()), Outcome::done);
    EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    worker().release_ownership();
  }).join();
  Batch batch = take_batch(shuffle);
  EXPECT_EQ(batch.row_count(), 2u);
}

TEST_F(ShuffleApi, after_close_everything_says_so) {
  const QueryId id = open_and_begin(2);
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  std::thread other([&] { EXPECT_TRUE(session(1).close().ok()); });
  EXPECT_TRUE(session().close().ok());
  EXPECT_TRUE(session().close().ok()) << "twice";
  other.join();
  Batch batch;
  expect_failed(shuffle.sender()->send(0, filled(8, 1), Wait::none()), shuffle,
                Code::session_closed);
  EXPECT_EQ(shuffle.sender()->send(0, filled(8, 1)), Outcome::failed);
  EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::failed);
  EXPECT_EQ(shuffle.sender()->finish(), Outcome::failed);
  (void)shuffle.sender()->flush();
  (void)shuffle.receiver()->stop();
  (void)shuffle.cancel("too late");
  EXPECT_EQ(worker().open_shuffle(spec(id, 1, 8)).status().code(), Code::session_closed);
  EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::failed);
  EXPECT_EQ(end_failed(worker(), id).code(), Code::session_closed);
  (void)session().cancel_query(id, "too late");
  EXPECT_EQ(session().metrics().workers.size(), 1u);
  shuffle.close();
}

TEST_F(ShuffleApi, closing_ends_the_waits_of_other_threads) {
  const QueryId id = open_and_begin(2, {{"cluster.workers", "3,1"}, {"wait.sleep_ms", "1000"}});
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    Shuffle shuffle = open_shuffle(worker(0), spec(id, 0, 8));
    Batch batch;
    expect_failed(shuffle.receiver()->receive(batch), shuffle, Code::session_closed);
  });
  threads.emplace_back(
      [&] { EXPECT_EQ(worker(1).wait_until([] { return false; }), Outcome::failed); });
  threads.emplace_back([&] {
    Shuffle shuffle = open_shuffle(worker(2), spec(id, 1, 8, {2}, {3}));
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done) outcome = shuffle.sender()->send(0, filled(8, 1));
    EXPECT_EQ(outcome, Outcome::failed);
  });
  Shuffle far = open_shuffle(worker(3), spec(id, 0, 8));
  for (uint32_t w = 0; w < 3; ++w) until_asleep(worker(w));
  EXPECT_TRUE(is_ok(session(0).close()));
  for (std::thread& thread : threads) thread.join();
  // The other node: this query has lost a participant, and no more.
  Batch batch;
  expect_failed(far.receiver()->receive(batch), far, Code::peer_lost, {"node 0"});
}

TEST_F(ShuffleApi, a_batch_outlives_its_shuffle_and_session) {
  for (const bool own_node : {true, false}) {
    const QueryId id = open_and_begin(2, {{"close.timeout_ms", "50"}});
    std::vector<Batch> held(3);
    {
      Shuffle sender =
          open_shuffle(worker(own_node ? 1 : 0), spec(id, 0, 0, {own_node ? 1u : 0u}, {1}));
      std::optional<Shuffle> receiver;
      if (!own_node) receiver = open_shuffle(worker(1), spec(id, 0, 0, {0}, {1}));
      Shuffle& at = own_node ? sender : *receiver;
      // In fragments: in memory. Then one that is copied, then one that stays in its ring.
      const size_t sizes[] = {20'000, 50, 100};
      for (int i = 0; i < 3; ++i) {
        // This thread has both workers: nobody would receive while a large row waits for room.
        EXPECT_EQ(sender.sender()->send(0, filled(sizes[i], i + 1), Wait::none()), Outcome::done);
        (void)sender.sender()->flush();
        Outcome outcome;
        while ((outcome = at.receiver()->receive(held[i], Wait::none())) == Outcome::would_wait)
          (void)sender.sender()
              ->flush();  // what did not fit into the ring follows when its worker is in a call
        ASSERT_EQ(outcome, Outcome::done);
        if (i != 1) continue;
        ASSERT_TRUE(held[i].detach().ok());
      }
    }
    // Closing says that a batch in place is still held: its memory stays.
    std::thread other([&] { (void)session(0).close(); });
    EXPECT_EQ(session(1).close().code(), Code::deadline_exceeded);
    other.join();
    cluster_.reset();
    const size_t sizes[] = {20'000, 50, 100};
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(held[i].row_count(), 1u);
      for (const auto row : held[i].each_row()) {
        ASSERT_EQ(row.size(), sizes[i]);
        EXPECT_EQ(row[row.size() - 1], static_cast<std::byte>(i + 1));
      }
      held[i].release();
      held[i].release();
    }
  }
}

}  // namespace
}  // namespace faro::test
