// Rows and receivers through the public API: sizes, widths, workers that do not exist, and workers that open nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;

TEST_F(ShuffleApi, a_row_above_the_limit_is_refused_and_the_query_goes_on) {
  open(1, {{"row.limit_bytes", "1000"}});
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 3, 0));
  EXPECT_EQ(shuffle.try_send(0, filled(1001, 1)), Outcome::failed);
  EXPECT_EQ(shuffle.status().code(), Code::row_too_large);
  names(shuffle.status(), {"stage 3", "1001 bytes", "row.limit_bytes = 1000"});
  RowClaim claim;
  EXPECT_EQ(shuffle.try_claim(0, 1001, claim), Outcome::failed);
  EXPECT_EQ(shuffle.status().code(), Code::row_too_large);
  EXPECT_EQ(shuffle.send(0, filled(1000, 2)), Outcome::done);
  EXPECT_EQ(shuffle.finish(), Outcome::done);
  Batch batch;
  ASSERT_EQ(shuffle.take(batch), Outcome::done);
  EXPECT_EQ((*batch.each_row().begin()).size(), 1000u);
  batch.release();
  EXPECT_EQ(shuffle.take(batch), Outcome::end_of_stream);
  shuffle.close();
  EXPECT_EQ(worker().open_shuffle(spec(id, 4, 1001)).status().code(), Code::invalid_argument);
  EXPECT_EQ(worker().end_query(id), Outcome::done);
}

// Rows of every size around a frame (1 KiB) and far above it, copied and written in place.
TEST_F(ShuffleApi, rows_with_a_length_each_arrive_as_they_were_written) {
  open(1);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 0));
  const Result<VariableRowSender> sender = shuffle.variable_sender();
  ASSERT_TRUE(sender.ok()) << sender.status().to_string();
  EXPECT_EQ(shuffle.sender<uint64_t>().status().code(), Code::invalid_argument);
  const std::vector<size_t> sizes = {0,    1,    3,    100,  500, 500, 1000,
                                     1001, 1004, 1008, 1024, 0,   7,   5000};
  const auto value = [](size_t i) { return static_cast<int>(17 * i % 251); };
  for (size_t i = 0; i < sizes.size(); ++i) {
    SCOPED_TRACE(sizes[i]);
    const auto fail = [](std::byte*) { throw std::runtime_error("no row after all"); };
    EXPECT_THROW((void)sender->write(0, sizes[i], fail), std::runtime_error);
    const auto fill = [&](std::byte* to) { std::memset(to, value(i), sizes[i]); };
    EXPECT_EQ(
        i % 2 == 0 ? sender->write(0, sizes[i], fill) : sender->send(0, filled(sizes[i], value(i))),
        Outcome::done);
  }
  EXPECT_EQ(sender->try_write(1, 10, [](std::byte*) { ADD_FAILURE(); }), Outcome::failed);
  names(shuffle.status(), {"receiver 1 does not exist"});
  ASSERT_EQ(shuffle.finish(), Outcome::done);
  size_t row_count = 0;
  Batch batch;
  while (shuffle.take(batch) == Outcome::done) {
    for (const std::span<const std::byte> row : batch.each_row()) {
      ASSERT_LT(row_count, sizes.size());
      EXPECT_TRUE(std::ranges::equal(row, filled(sizes[row_count], value(row_count))))
          << "row " << row_count << " of " << row.size() << " bytes";
      ++row_count;
    }
  }
  EXPECT_EQ(row_count, sizes.size());
}

TEST_F(ShuffleApi, a_receiver_that_does_not_exist_is_refused_and_the_query_goes_on) {
  open(1, {{"cluster.workers", "2"}});
  const QueryId id = session().begin_query();
  {
    Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8, {0}, {0}));
    EXPECT_EQ(shuffle.try_send(1, filled(8, 1)), Outcome::failed);
    EXPECT_EQ(shuffle.status().code(), Code::invalid_argument);
    names(shuffle.status(), {"receiver 1 does not exist"});
    const uint32_t some[] = {0, 7};
    EXPECT_EQ(shuffle.try_multicast(some, filled(8, 1)), Outcome::failed);
    Result<RowSender<uint64_t>> sender = shuffle.sender<uint64_t>();
    ASSERT_TRUE(sender.ok());
    EXPECT_EQ(sender->try_send(1, 5), Outcome::failed);
    EXPECT_EQ(sender->try_send(UINT32_MAX, 5), Outcome::failed);
    EXPECT_EQ(shuffle.finish(), Outcome::done);
    Batch batch;
    EXPECT_EQ(shuffle.take(batch), Outcome::end_of_stream) << "a multicast is sent to all or none";
    EXPECT_EQ(shuffle.try_poll_from(1, batch), Outcome::failed) << "no sender";
    EXPECT_EQ(shuffle.try_poll_from(9, batch), Outcome::failed);
  }
  for (const std::vector<uint32_t>& wrong :
       {std::vector<uint32_t>{2}, {0, 0}, {0, 1, UINT32_MAX}}) {
    EXPECT_EQ(worker().open_shuffle(spec(id, 1, 8, wrong, {})).status().code(),
              Code::invalid_argument);
    EXPECT_EQ(worker().open_shuffle(spec(id, 1, 8, {}, wrong)).status().code(),
              Code::invalid_argument);
  }
}

TEST_F(ShuffleApi, a_node_that_does_not_exist_is_not_waited_for) {
  open(1);
  EXPECT_EQ(session().await_node(0), Outcome::done);
  EXPECT_EQ(session().await_node(1), Outcome::failed);
}

TEST_F(ShuffleApi, a_row_of_another_width_is_refused) {
  open(1);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  EXPECT_EQ(shuffle.try_send(0, filled(7, 1)), Outcome::failed);
  names(shuffle.status(), {"7 bytes", "row_bytes = 8"});
  EXPECT_EQ(shuffle.sender<uint32_t>().status().code(), Code::invalid_argument);
  RowClaim claim;
  EXPECT_EQ(shuffle.try_claim(0, 9, claim), Outcome::failed);
  ASSERT_EQ(shuffle.try_claim(0, 8, claim), Outcome::done);
  EXPECT_EQ(claim.commit(7).code(), Code::invalid_argument);
  EXPECT_EQ(claim.data().size(), 8u) << "still claimed";
  EXPECT_TRUE(claim.commit().ok());
  EXPECT_EQ(claim.commit().code(), Code::wrong_state);
}

TEST_F(ShuffleApi, rows_read_as_wider_ones_fail_the_query_and_are_not_taken_for_none) {
  open(1);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 3, 8));
  ASSERT_EQ(shuffle.send(0, filled(8, 1)), Outcome::done);
  ASSERT_EQ(shuffle.finish(), Outcome::done);
  Batch batch;
  ASSERT_EQ(shuffle.take(batch), Outcome::done);
  EXPECT_EQ(batch.rows<uint64_t>().size(), 1u);
  EXPECT_EQ(batch.rows<uint32_t>().size(), 0u);
  batch.release();
  EXPECT_EQ(batch.rows<uint32_t>().size(), 0u) << "an empty batch has no width";
  shuffle.close();
  Status cause;
  EXPECT_EQ(worker().end_query(id, &cause), Outcome::failed);
  EXPECT_EQ(cause.code(), Code::query_failed);
  names(cause, {"worker 0", "stage 3", "8 bytes", "4 bytes"});
}

TEST_F(ShuffleApi, widths_that_differ_between_nodes_fail_the_query_on_both) {
  for (const bool opened_before : {true, false}) {
    open(2);
    const QueryId id = session().begin_query();
    Shuffle receiver;
    if (opened_before) receiver = open_shuffle(worker(1), spec(id, 0, 16, {0}, {1}));
    Shuffle sender = open_shuffle(worker(0), spec(id, 0, 8, {0}, {1}));
    EXPECT_EQ(sender.send(0, filled(8, 1)), Outcome::done);
    sender.flush();
    Status status;
    if (opened_before) {
      Batch batch;
      EXPECT_EQ(receiver.take(batch), Outcome::failed);
      status = receiver.status();
    } else {
      // The rows are there before it opens, at some time.
      for (uint32_t stage = 0; status.ok(); ++stage) {
        (void)worker(1).wait_until([] { return false; }, milliseconds(1));
        if (session(1).metrics().lanes.empty()) continue;
        uint64_t frames = 0;
        for (const LaneMetrics& lane : session(1).metrics().lanes) frames += lane.frames_received;
        if (frames < 2) continue;
        status = worker(1).open_shuffle(spec(id, 0, 16, {0}, {1})).status();
        ASSERT_FALSE(status.ok());
      }
    }
    EXPECT_EQ(status.code(), Code::stage_mismatch);
    names(status, {"row_bytes = 8", "16"});
    Batch none;
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done) {
      outcome = sender.send(0, filled(8, 1));
      sender.flush();
    }
    EXPECT_EQ(outcome, Outcome::failed);
    EXPECT_EQ(sender.status().code(), Code::stage_mismatch);
    cluster_->close();
  }
}

TEST_F(ShuffleApi, rows_that_nobody_opens_fail_the_query_in_time) {
  open(2, {{"query.unopened_timeout_ms", "100"}, {"liveness.timeout_ms", "400"}});
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(0), spec(id, 7, 8));
  EXPECT_EQ(shuffle.send(1, filled(8, 1)), Outcome::done);
  shuffle.flush();
  std::thread other([&] {
    // Worker 1 lives, but has forgotten this stage: it opens another one.
    Shuffle wrong = open_shuffle(worker(1), spec(id, 8, 8, {1}, {1}));
    Batch batch;
    EXPECT_EQ(wrong.take(batch), Outcome::failed);
    wrong.close();
    Status cause;
    EXPECT_EQ(worker(1).end_query(id, &cause), Outcome::failed);
    EXPECT_EQ(cause.code(), Code::query_unopened) << cause.to_string();
  });
  Batch batch;
  EXPECT_EQ(shuffle.take(batch), Outcome::failed);
  EXPECT_EQ(shuffle.status().code(), Code::query_unopened);
  names(shuffle.status(), {"worker 0", "stage 7", "worker 1", "query.unopened_timeout_ms = 100"});
  shuffle.close();
  EXPECT_EQ(worker(0).end_query(id), Outcome::failed);
  worker(0).hand_over();
  other.join();
}

}  // namespace
}  // namespace faro::test
