// How queries end, through the public API: shuffles that are closed before their end, parts that fail, workers that
// do not agree about a stage. Between two nodes, over shared memory and over TCP, and within one.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

/// Workers 0 and 1, on one node or on two.
struct Place {
  const char* name;
  uint32_t nodes;
  const char* transport;
};

class ShuffleEndings : public ShuffleApi, public testing::WithParamInterface<Place> {
 protected:
  void SetUp() override { open_with({"ring.per_lane", "1"}); }
  void open_with(const SettingList::value_type& setting) {
    id_ =
        open_and_begin(GetParam().nodes, {{"transport", GetParam().transport},
                                          {"cluster.workers", GetParam().nodes == 1 ? "2" : "1,1"},
                                          setting});
  }

  /// Ends the query at both workers; what each was told.
  std::vector<Status> end_everywhere() {
    std::vector<Status> causes(2);
    for (uint32_t w = 0; w < 2; ++w) worker(w).release_ownership();
    cluster_->run_workers([&](uint32_t w) { (void)end_query(worker(w), id_, causes[w]); });
    return causes;
  }
  void expect_failed_everywhere(Code code, std::initializer_list<std::string_view> words) {
    for (const Status& cause : end_everywhere()) expect_error(cause, code, words);
  }
  /// From worker 0 to worker 1.
  ShuffleSpec gather(uint32_t stage = 0) { return spec(id_, stage, 8, {0}, {1}); }
  ShuffleSpec gather_of(std::string format, uint32_t stage = 0) {
    ShuffleSpec spec = gather(stage);
    spec.format = std::move(format);
    return spec;
  }

  /// A stage of one row, which the sender has finished and closed.
  void send_one_row(std::string format = "", uint32_t stage = 0) {
    Shuffle sender = open_shuffle(worker(0), gather_of(std::move(format), stage));
    ASSERT_EQ(sender.sender()->send(0, filled(8, 1)), Outcome::done);
    ASSERT_EQ(sender.sender()->finish(), Outcome::done);
  }

  QueryId id_;
};

INSTANTIATE_TEST_SUITE_P(Places, ShuffleEndings,
                         testing::Values(Place{"local", 1, "tcp"}, Place{"tcp", 2, "tcp"},
                                         Place{"shm", 2, "shm"}),
                         [](const auto& place) { return place.param.name; });

// --- shuffles that are closed before their end

TEST_P(ShuffleEndings, a_receiver_closed_before_its_end_of_stream_cancels_the_query) {
  send_one_row();
  { Shuffle receiver = open_shuffle(worker(1), gather()); }
  expect_failed_everywhere(Code::query_cancelled,
                           {"worker 1", "receiver", "stage 0", "before its end of stream"});
}

TEST_P(ShuffleEndings, rows_that_were_taken_but_perhaps_not_processed_are_no_end_of_stream) {
  send_one_row();
  {
    Shuffle receiver = open_shuffle(worker(1), gather());
    Batch batch = take_batch(receiver);
    // Nothing more comes, and that has arrived; but nobody has asked.
    batch.release();
    const Outcome waited =
        worker(1).wait_until([] { return false; }, Wait::at_most(std::chrono::milliseconds(1)));
    ASSERT_EQ(waited, Outcome::deadline);
  }
  expect_failed_everywhere(Code::query_cancelled, {"worker 1", "before its end of stream"});
}

TEST_P(ShuffleEndings, an_exception_in_a_receive_loop_fails_the_query_everywhere) {
  send_one_row();
  EXPECT_THROW(
      {
        Shuffle receiver = open_shuffle(worker(1), gather());
        Batch batch;
        while (receiver.receiver()->receive(batch) == Outcome::done)
          throw std::runtime_error("a bad row");
      },
      std::runtime_error);
  expect_failed_everywhere(Code::query_cancelled, {"worker 1", "stage 0", "by an exception"});
}

TEST_P(ShuffleEndings, a_receiver_that_stops_before_it_closes_lets_the_query_be_done) {
  send_one_row();
  {
    Shuffle receiver = open_shuffle(worker(1), gather());
    (void)receiver.receiver()->stop();
  }
  for (const Status& cause : end_everywhere()) EXPECT_TRUE(is_ok(cause));
}

TEST_P(ShuffleEndings, the_end_of_stream_of_each_sender_is_that_of_the_receiver) {
  for (const bool of_each : {true, false}) {
    SCOPED_TRACE(of_each ? "of each sender" : "of one sender");
    id_ = session().begin_query();
    const ShuffleSpec both = spec(id_, 0, 8, {0, 1}, {1});
    {
      Shuffle sender = open_shuffle(worker(0), both);
      ASSERT_EQ(sender.sender()->finish(), Outcome::done);
      Shuffle receiver = open_shuffle(worker(1), both);
      ASSERT_EQ(receiver.sender()->finish(), Outcome::done);
      Batch batch;
      for (const uint32_t from : {0u, 0u, 1u}) {
        if (from == 1 && !of_each) continue;
        EXPECT_EQ(receiver.receiver()->receive_from(from, batch), Outcome::end_of_stream);
      }
    }
    if (of_each) {
      for (const Status& cause : end_everywhere()) EXPECT_TRUE(is_ok(cause));
    } else {
      expect_failed_everywhere(Code::query_cancelled, {"worker 1", "before its end of stream"});
    }
  }
}

// --- parts that fail

TEST_P(ShuffleEndings, a_part_that_fails_before_it_opens_fails_those_who_wait_for_its_rows) {
  Shuffle receiver = open_shuffle(worker(1), gather());
  std::thread failing([&] {
    expect_error(
        end_failed(worker(0), id_, Status(Code::resource_limit, "no memory for the table")),
        Code::query_failed, {"worker 0", "resource_limit", "no memory for the table"});
    worker(0).release_ownership();
  });
  Batch batch;
  expect_failed(receiver.receiver()->receive(batch), receiver, Code::query_failed,
                {"worker 0", "resource_limit", "no memory for the table"});
  receiver.close();
  failing.join();
  expect_error(end_failed(worker(1), id_), Code::query_failed,
               {"worker 0", "no memory for the table"});
}

TEST_P(ShuffleEndings, a_failed_part_keeps_its_code_if_it_is_one_of_a_query) {
  const Status cause =
      end_failed(worker(0), id_, Status(Code::query_cancelled, "the user left"), Wait::none());
  EXPECT_EQ(cause.code(), Code::query_cancelled);
  EXPECT_EQ(cause.message(), "worker 0 failed: the user left");
  worker(0).release_ownership();
  EXPECT_EQ(end_failed(worker(1), id_).message(), "worker 0 failed: the user left");
}

TEST_P(ShuffleEndings, a_failure_that_is_ok_is_none) {
  cluster_->run_workers([&](uint32_t w) {
    Status cause;
    EXPECT_EQ(end_query(worker(w), id_, Status::Ok(), cause), Outcome::done) << cause.to_string();
  });
}

// --- parts that end without opening, and workers that do not agree

TEST_P(ShuffleEndings, a_part_that_only_ends_fails_those_who_wait_for_its_rows) {
  std::thread silent([&] {
    EXPECT_EQ(end_failed(worker(0), id_).code(), Code::query_unopened);
    worker(0).release_ownership();
  });
  Shuffle receiver = open_shuffle(worker(1), gather(3));
  Batch batch;
  EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
  const Status failure = receiver.status();
  expect_error(failure, Code::query_unopened,
               {"worker 0 of node 0", "query 0:1", "stage 3", "worker 1"});
  EXPECT_EQ(failure.node(), 0u);
  EXPECT_EQ(failure.stage(), 3u);
  EXPECT_EQ(failure.query(), id_);
  receiver.close();
  silent.join();
}

TEST_P(ShuffleEndings, senders_and_receivers_that_differ_fail_the_query_by_both_names) {
  const std::vector<std::vector<ShuffleSpec>> pairs = {
      // worker 1 gets no OPEN; worker 1 gets one that it does not expect; the order is another
      {spec(id_, 3, 8, {0}, {0}), spec(id_, 3, 8, {0}, {1})},
      {spec(id_, 3, 8, {0}, {1}), spec(id_, 3, 8, {0, 1}, {1})},
      {spec(id_, 3, 8, {0}, {0, 1}), spec(id_, 3, 8, {0}, {1, 0})},
  };
  for (std::vector<ShuffleSpec> specs : pairs) {
    id_ = session().begin_query();
    for (uint32_t w = 0; w < 2; ++w) specs[w].query = id_;
    cluster_->run_workers([&](uint32_t w) {
      Result<Shuffle> opened = worker(w).open_shuffle(specs[w]);
      Status failure = opened.status();
      if (opened.ok()) {
        Shuffle shuffle = std::move(*opened);
        if (const auto sender = shuffle.sender(); sender.ok()) (void)sender->finish();
        const auto receiver = shuffle.receiver();
        Batch batch;
        while (receiver.ok() && receiver->receive(batch) == Outcome::done) {
        }
        failure = shuffle.status();
      }
      const Status cause = end_failed(worker(w), id_);
      expect_error(cause, Code::stage_mismatch,
                   {"stage 3", "worker 0", "worker 1", "senders", "receivers"});
      EXPECT_EQ(cause.category(), Category::query);
      EXPECT_EQ(cause.stage(), 3u);
    });
  }
}

// Whatever comes first, the row, the ends or the outcome.
TEST_P(ShuffleEndings, rows_for_a_worker_that_never_opens_their_stage_do_not_end_well) {
  cluster_->run_workers([&](uint32_t w) {
    if (w == 0) {
      Shuffle sender = open_shuffle(worker(0), gather());
      (void)sender.sender()->send(0, filled(8, 1));
      (void)sender.sender()->finish();
    }
    const Status cause = end_failed(worker(w), id_);
    EXPECT_EQ(cause.category(), Category::query) << cause.to_string();
  });
}

TEST_P(ShuffleEndings, rows_of_another_width_than_is_expected_fail_the_query) {
  cluster_->run_workers([&](uint32_t w) {
    Result<Shuffle> opened = worker(w).open_shuffle(spec(id_, 3, w == 0 ? 8 : 16, {0}, {1}));
    if (opened.ok() && w == 0) {
      (void)opened->sender()->send(0, filled(8, 1));
      (void)opened->sender()->finish();
    } else if (opened.ok()) {
      Batch batch;
      EXPECT_EQ(opened->receiver()->receive(batch), Outcome::failed);
    }
    if (opened.ok()) opened->close();
    const Status cause = end_failed(worker(w), id_);
    EXPECT_EQ(cause.code(), Code::stage_mismatch) << cause.to_string();
    EXPECT_EQ(cause.category(), Category::query);
    EXPECT_EQ(cause.stage(), 3u);
  });
}

// --- what the rows are

TEST_P(ShuffleEndings, rows_of_another_format_than_is_read_fail_the_query_by_both_names) {
  for (const bool receiver_is_first : {true, false}) {
    SCOPED_TRACE(receiver_is_first ? "the receiver opens first" : "rows come first");
    id_ = session().begin_query();
    Shuffle receiver;
    if (receiver_is_first) receiver = open_shuffle(worker(1), gather_of("(key BIGINT)"));
    send_one_row("(key INT, value INT)");
    send_one_row("", 1);
    Status failure;
    Batch batch;
    if (receiver_is_first) {
      EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::failed);
      failure = receiver.status();
    } else {  // the other stage's row lies behind, in the same ring
      Shuffle behind = open_shuffle(worker(1), gather(1));
      EXPECT_EQ(behind.receiver()->receive(batch), Outcome::done);
      failure = worker(1).open_shuffle(gather_of("(key BIGINT)")).status();
      batch.release();
    }
    receiver.close();
    EXPECT_EQ(failure.code(), Code::stage_mismatch) << failure.to_string();
    EXPECT_EQ(failure.query(), id_);
    EXPECT_EQ(failure.stage(), 0u);
    const std::string query = "query " + id_.to_string();
    const std::string reader = GetParam().nodes == 1 ? "worker 1 of node 0" : "worker 1 of node 1";
    expect_failed_everywhere(
        Code::stage_mismatch,
        {"stage 0", query, "worker 0 of node 0", "(key INT, value INT)", reader, "(key BIGINT)"});
  }
}

TEST_P(ShuffleEndings, formats_that_begin_alike_are_named_by_their_digests) {
  const std::string alike(1000, 'x');
  send_one_row(alike + "y");
  Result<Shuffle> receiver = worker(1).open_shuffle(gather_of(alike + "z"));
  Batch batch;
  if (receiver.ok()) {
    EXPECT_EQ(receiver->receiver()->receive(batch), Outcome::failed);
    receiver->close();
  }
  expect_failed_everywhere(Code::stage_mismatch,
                           {std::string(256, 'x') + "… (digest ", "reads them as"});
}

TEST_P(ShuffleEndings, a_format_is_compared_only_with_another_one_that_is_given) {
  const std::string longest(5000, 'x');
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {longest, ""}, {"", "(key INT)"}, {longest, longest}, {"(key INT)", "(key INT)"}};
  for (const auto& [written, read] : pairs) {
    id_ = session().begin_query();
    send_one_row(written);
    {
      Shuffle receiver = open_shuffle(worker(1), gather_of(read));
      Batch batch = take_batch(receiver);
      EXPECT_EQ(receiver.receiver()->receive(batch), Outcome::end_of_stream);
    }
    for (const Status& cause : end_everywhere()) EXPECT_TRUE(is_ok(cause));
  }
}

TEST_P(ShuffleEndings, a_call_beyond_a_bound_is_refused_and_everything_else_goes_on) {
  open_with({"shuffle.limit", "1"});
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), gather());
    const Status refused = worker(w).open_shuffle(gather(1)).status();
    EXPECT_EQ(refused.code(), Code::limit_exceeded);
    EXPECT_EQ(refused.category(), Category::operation);
    EXPECT_EQ(refused.stage(), 1u);
    EXPECT_EQ(refused.query(), id_);
    if (w == 0) {
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    } else {
      Batch batch;
      EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::end_of_stream);
    }
    close_and_end(shuffle, w, id_);
  });
}

}  // namespace
}  // namespace faro::test
