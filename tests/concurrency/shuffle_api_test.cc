// The public API of a session's shuffles: wrong use, limits, ends. Real sessions; what needs more
// than one thread has them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/session_cluster.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;
constexpr std::chrono::seconds kLimit{40};

std::vector<std::byte> filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

// Until a worker that another thread uses has gone to sleep.
void until_asleep(const Worker& worker) {
  while (worker.metrics().sleeps == 0) std::this_thread::yield();
}

class ShuffleApi : public testing::Test {
 protected:
  void open(uint32_t nodes, SettingList settings = {}) {
    // One link needs real memory: not shared, so that the thread sanitizer sees it.
    settings.insert(settings.begin(), {"transport", "tcp"});
    cluster_ = std::make_unique<SessionCluster>(nodes, small_rings(settings));
    ASSERT_TRUE(cluster_->status().ok()) << cluster_->status().to_string();
  }
  Session& session(uint32_t node = 0) { return (*cluster_)[node]; }
  Worker& worker(uint32_t number = 0) { return cluster_->worker(number); }

  ShuffleSpec spec(const QueryId& query, uint32_t stage, uint32_t row_bytes,
                   std::vector<uint32_t> senders = {}, std::vector<uint32_t> receivers = {}) {
    return {query, stage, row_bytes, std::move(senders), std::move(receivers)};
  }
  Shuffle open_shuffle(Worker& at, const ShuffleSpec& what) {
    Result<Shuffle> opened = at.open_shuffle(what);
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return opened.ok() ? std::move(*opened) : Shuffle();
  }
  /// Sends and takes one row in a query of its own: the session works.
  void expect_working() {
    const QueryId id = session().begin_query();
    cluster_->run_workers([&](uint32_t w) {
      Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 8));
      for (uint32_t r = 0; r < shuffle.receiver_count(); ++r)
        EXPECT_EQ(shuffle.send(r, filled(8, 1)), Outcome::done);
      EXPECT_EQ(shuffle.finish(), Outcome::done);
      uint32_t rows = 0;
      Batch batch;
      while (shuffle.take(batch) == Outcome::done) rows += batch.row_count();
      EXPECT_EQ(rows, cluster_->worker_count());
      shuffle.close();
      Status cause;
      EXPECT_EQ(worker(w).end_query(id, &cause), Outcome::done) << cause.to_string();
    });
  }
  bool names(const Status& status, std::initializer_list<const char*> words) {
    for (const char* word : words) {
      if (status.message().find(word) == std::string_view::npos) {
        ADD_FAILURE() << '"' << word << "\" is missing in: " << status.to_string();
        return false;
      }
    }
    return true;
  }

  Watchdog watchdog_{kLimit, [this] {
                       std::string text;
                       for (uint32_t n = 0; cluster_ != nullptr && n < cluster_->size(); ++n) {
                         if (cluster_->session(n) == nullptr) continue;
                         text += fmt::format("node {}: {} queries run\n", n,
                                             cluster_->session(n)->metrics().queries_running);
                       }
                       return text;
                     }};
  std::unique_ptr<SessionCluster> cluster_;
};

// --- rows and receivers

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

/// What a worker received, by sender: the rows' bytes in order.
std::map<uint32_t, std::vector<std::byte>> take_all(Shuffle& shuffle) {
  std::map<uint32_t, std::vector<std::byte>> received;
  Batch batch;
  while (shuffle.take(batch) == Outcome::done) {
    std::vector<std::byte>& from = received[batch.sender()];
    for (const std::span<const std::byte> row : batch.each_row())
      from.insert(from.end(), row.begin(), row.end());
  }
  return received;
}

// Many times what fits into the rings, so that the inlined path and the one that makes room meet.
TEST_F(ShuffleApi, rows_that_are_broadcast_reach_everybody_in_order) {
  open(2, {{"cluster.workers", "2"}});
  const QueryId id = session().begin_query();
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
        EXPECT_EQ(sender.broadcast_all(left.first(count), outcome), count);
        left = left.subspan(count);
      }
      EXPECT_EQ(outcome, Outcome::done);
      EXPECT_EQ(shuffle.finish(), Outcome::done);
    }
    received[w] = take_all(shuffle);
    shuffle.close();
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
  for (const auto& from : received) {
    EXPECT_EQ(from.size(), 2u);
    for (const auto& [sender, all] : from) EXPECT_EQ(all, expected) << sender;
  }
}

TEST_F(ShuffleApi, rows_that_are_broadcast_go_to_all_or_to_none) {
  open(1, {{"cluster.workers", "2"}});
  const QueryId id = session().begin_query();
  std::vector<Shuffle> shuffles;
  for (const uint32_t w : {0, 1}) shuffles.push_back(open_shuffle(worker(w), spec(id, 0, 8, {0})));
  const RowSender<uint64_t> sender = *shuffles[0].sender<uint64_t>();
  const std::vector<uint64_t> rows(1 << 20, 7);
  Outcome outcome = Outcome::done;
  const size_t taken = sender.try_broadcast_all(rows, outcome);
  EXPECT_EQ(outcome, Outcome::would_wait);
  EXPECT_EQ(sender.try_broadcast(7), Outcome::would_wait);
  ASSERT_GT(taken, 0u);
  ASSERT_LT(taken, rows.size());
  for (const uint32_t w : {0, 1}) worker(w).hand_over();
  cluster_->run_workers([&](uint32_t w) {
    if (w == 0) {
      EXPECT_EQ(shuffles[0].finish(), Outcome::done);
    }
    EXPECT_EQ(take_all(shuffles[w])[0].size(), taken * sizeof(uint64_t));
    shuffles[w].close();
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
}

TEST_F(ShuffleApi, rows_that_are_broadcast_are_dropped_for_a_receiver_that_has_stopped) {
  open(1, {{"cluster.workers", "2"}});
  const QueryId id = session().begin_query();
  constexpr uint64_t kRows = 20000;
  std::vector<uint64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0u);
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 8, {0}));
    if (w == 1) {
      shuffle.stop();
    } else {
      const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
      Outcome outcome = Outcome::done;
      for (size_t begin = 0; begin < kRows; begin += 500) {
        EXPECT_EQ(sender.broadcast_all(std::span(rows).subspan(begin, 500), outcome), 500u);
      }
      EXPECT_EQ(outcome, Outcome::done);
      EXPECT_EQ(shuffle.finish(), Outcome::done);
      const auto bytes = std::as_bytes(std::span(rows));
      EXPECT_EQ(take_all(shuffle)[0], std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
    shuffle.close();
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
}

// A length each: around the size of a frame (1 KiB) and above.
TEST_F(ShuffleApi, rows_with_a_length_each_are_broadcast_as_they_were_written) {
  open(2);
  const QueryId id = session().begin_query();
  std::vector<std::vector<std::byte>> rows;
  std::vector<std::byte> expected;
  for (int i = 0; i < 300; ++i) {
    rows.push_back(filled(static_cast<size_t>(i) * 37 % 1500, i));
    expected.insert(expected.end(), rows.back().begin(), rows.back().end());
  }
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 0, {1}));
    if (w == 1) {
      const VariableRowSender sender = *shuffle.variable_sender();
      for (const auto& row : rows) EXPECT_EQ(sender.broadcast(row), Outcome::done);
      EXPECT_EQ(shuffle.finish(), Outcome::done);
    }
    EXPECT_EQ(take_all(shuffle)[1], expected);
    shuffle.close();
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
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
    EXPECT_EQ(status.code(), Code::invalid_argument);
    names(status, {"row_bytes = 8", "16"});
    Batch none;
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done) {
      outcome = sender.send(0, filled(8, 1));
      sender.flush();
    }
    EXPECT_EQ(outcome, Outcome::failed);
    EXPECT_EQ(sender.status().code(), Code::invalid_argument);
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
    // Worker 1 lives, but has forgotten this stage.
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

// --- overflow

TEST_F(ShuffleApi, the_query_that_uses_most_of_a_full_overflow_fails_and_others_go_on) {
  open(1, {{"overflow.memory_bytes", "16 KiB"}, {"overflow.file_bytes", "64 KiB"}});
  const QueryId big = session().begin_query();
  const QueryId small = session().begin_query();
  Shuffle glutton = open_shuffle(worker(), spec(big, 0, 100));
  Shuffle modest = open_shuffle(worker(), spec(small, 1, 100));
  for (int i = 0; i < 30; ++i) ASSERT_EQ(modest.send(0, filled(100, i)), Outcome::done);
  Outcome outcome = Outcome::done;
  for (int i = 0; i < 10'000 && outcome == Outcome::done; ++i)
    outcome = glutton.send(0, filled(100, i));
  ASSERT_EQ(outcome, Outcome::failed);
  EXPECT_EQ(glutton.status().code(), Code::overflow_exhausted);
  names(glutton.status(), {"overflow.memory_bytes = 16384", "overflow.file_bytes = 65536"});
  Status cause;
  glutton.close();
  EXPECT_EQ(worker().end_query(big, &cause), Outcome::failed);
  EXPECT_EQ(cause.code(), Code::overflow_exhausted);

  EXPECT_EQ(modest.finish(), Outcome::done);
  uint32_t rows = 0;
  Batch batch;
  while (modest.take(batch) == Outcome::done) {
    for (const auto row : batch.each_row()) {
      EXPECT_EQ(std::memcmp(row.data(), filled(100, static_cast<int>(rows)).data(), 100), 0);
      ++rows;
    }
  }
  EXPECT_EQ(rows, 30u) << modest.status().to_string();
  modest.close();
  EXPECT_EQ(worker().end_query(small), Outcome::done);
  EXPECT_EQ(session().metrics().overflow_memory_bytes, 0u);
  EXPECT_EQ(session().metrics().overflow_file_bytes, 0u);
}

TEST_F(ShuffleApi, a_small_query_that_fills_the_last_of_overflow_is_not_the_one_that_fails) {
  open(1, {{"overflow.memory_bytes", "16 KiB"}, {"overflow.file_bytes", "0"}});
  const QueryId big = session().begin_query();
  const QueryId small = session().begin_query();
  Shuffle glutton = open_shuffle(worker(), spec(big, 0, 100));
  Shuffle modest = open_shuffle(worker(), spec(small, 1, 100));
  // The big one takes nearly all and stops sending in time.
  while (session().metrics().overflow_memory_bytes < 14'000)
    ASSERT_EQ(glutton.send(0, filled(100, 1)), Outcome::done);
  Outcome outcome = Outcome::done;
  int sent = 0;
  while (sent < 120 && outcome == Outcome::done) outcome = modest.send(0, filled(100, sent++));
  EXPECT_EQ(outcome, Outcome::done) << modest.status().to_string();
  Batch batch;
  EXPECT_EQ(glutton.try_poll(batch), Outcome::failed);
  EXPECT_EQ(glutton.status().code(), Code::overflow_exhausted);
  glutton.close();
  EXPECT_EQ(worker().end_query(big), Outcome::failed);
  EXPECT_EQ(modest.finish(), Outcome::done);
  int rows = 0;
  while (modest.take(batch) == Outcome::done) rows += static_cast<int>(batch.row_count());
  EXPECT_EQ(rows, sent);
}

// Rows of a worker for itself: an engine that polls whenever a try_send would wait keeps overflow
// out of it.
TEST_F(ShuffleApi, an_engine_that_never_waits_feels_back_pressure_from_itself) {
  open(1);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 64));
  uint32_t received = 0;
  for (uint32_t sent = 0; sent < 20'000;) {
    const Outcome outcome = shuffle.try_send(0, filled(64, 1));
    if (outcome == Outcome::done) {
      ++sent;
      continue;
    }
    ASSERT_EQ(outcome, Outcome::would_wait);
    Batch batch;
    const Outcome polled = shuffle.try_poll(batch);
    if (polled == Outcome::done) received += batch.row_count();
  }
  EXPECT_GT(received, 15'000u);
  EXPECT_LT(session().metrics().overflow_memory_peak_bytes, 64'000u);
}

// --- waiting and holding

TEST_F(ShuffleApi, who_holds_batches_is_told_instead_of_waiting) {
  open(1);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  ASSERT_EQ(shuffle.send(0, filled(8, 1)), Outcome::done);
  shuffle.flush();
  Batch held;
  ASSERT_EQ(shuffle.take(held), Outcome::done);
  Batch more;
  EXPECT_EQ(worker().metrics().held_frames, 1u);
  EXPECT_EQ(shuffle.take(more), Outcome::holding);
  EXPECT_EQ(shuffle.try_poll(more), Outcome::holding);
  EXPECT_EQ(worker().wait_until([] { return false; }), Outcome::holding);
  EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::done);
  // Sending is always possible: far more than the ring.
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(shuffle.send(0, filled(8, 2)), Outcome::done) << i;
  EXPECT_EQ(shuffle.finish(), Outcome::holding);
  ASSERT_TRUE(held.detach().ok());
  EXPECT_EQ(held.rows<uint64_t>().size(), 1u);
  EXPECT_EQ(shuffle.finish(), Outcome::done) << "detached batches hold nothing up";
  uint32_t rows = 0;
  while (shuffle.take(more) == Outcome::done) rows += more.row_count();
  EXPECT_EQ(rows, 2000u);
  std::byte first[8];
  std::memcpy(first, held.bytes().data(), 8);
  EXPECT_EQ(first[0], std::byte{1});
}

TEST_F(ShuffleApi, a_deadline_changes_nothing) {
  open(2);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(0), spec(id, 0, 8));
  Batch batch;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(shuffle.take(batch, milliseconds(20)), Outcome::deadline);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(20));
  EXPECT_EQ(shuffle.take_from(1, batch, milliseconds(0)), Outcome::deadline);
  EXPECT_EQ(worker(0).wait_until([] { return false; }, milliseconds(1)), Outcome::deadline);
  // Worker 1 has not opened: its ring fills, and then sending cannot go on.
  uint64_t sent = 0;
  Outcome outcome;
  while ((outcome = shuffle.send(1, filled(8, 1), milliseconds(5))) == Outcome::done &&
         sent < 100'000)
    ++sent;
  EXPECT_EQ(outcome, Outcome::deadline);
  EXPECT_EQ(worker(0).try_end_query(id), Outcome::failed) << "the shuffle is open";
  std::thread other([&] {
    Shuffle receiver = open_shuffle(worker(1), spec(id, 0, 8));
    EXPECT_EQ(receiver.finish(), Outcome::done);
    Batch got;
    uint64_t rows = 0;
    while (receiver.take(got) == Outcome::done) rows += got.row_count();
    EXPECT_EQ(rows, sent) << "what met a deadline was not sent, and everything else was";
    receiver.close();
    EXPECT_EQ(worker(1).end_query(id), Outcome::done);
  });
  EXPECT_EQ(shuffle.finish(), Outcome::done);
  while (shuffle.take(batch) == Outcome::done) {
  }
  shuffle.close();
  EXPECT_EQ(worker(0).end_query(id), Outcome::done);
  worker(0).hand_over();
  other.join();
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
// less than half the ring lies unread, so that nothing is set aside either.
TEST_F(ShuffleApi, what_was_released_is_told_when_the_ring_fills_up_later) {
  open(2, {{"ring.per_lane", "1"}, {"transfer.threshold_bytes", "0"}});
  const QueryId id = session().begin_query();
  Shuffle wanted_sender = open_shuffle(worker(0), spec(id, 0, 0, {0}, {1}));
  Shuffle other_sender = open_shuffle(worker(0), spec(id, 1, 0, {0}, {1}));
  Shuffle wanted = open_shuffle(worker(1), spec(id, 0, 0, {0}, {1}));
  Shuffle other = open_shuffle(worker(1), spec(id, 1, 0, {0}, {1}));
  // A frame of so many bytes in the ring: its header, the row's length, the row.
  const auto row = [](size_t frame_bytes) { return filled(frame_bytes - 20, 1); };
  const auto pass = [&](Shuffle& from, Shuffle& to, size_t frame_bytes) {
    EXPECT_EQ(from.send(0, row(frame_bytes)), Outcome::done);
    from.flush();
    Batch batch;
    EXPECT_EQ(to.take(batch), Outcome::done);
  };
  // Ring of 4096. With the two OPEN of 64 bytes each: positions 128, 192, …
  pass(other_sender, other, 64);
  for (const size_t frame_bytes : {896, 1024, 1024, 960, 960, 128})
    pass(wanted_sender, wanted, frame_bytes);
  worker(1).hand_over();
  const uint64_t sleeps = worker(1).metrics().sleeps;
  std::thread receiver([&] {
    Batch batch;
    EXPECT_EQ(wanted.take(batch, std::chrono::seconds(20)), Outcome::done);
    worker(1).hand_over();
  });
  while (worker(1).metrics().sleeps == sleeps) std::this_thread::yield();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(other_sender.send(0, row(1024), std::chrono::seconds(10)), Outcome::done) << i;
  EXPECT_EQ(wanted_sender.send(0, row(64), std::chrono::seconds(10)), Outcome::done);
  wanted_sender.flush();
  receiver.join();
  const std::vector<LaneMetrics> lanes = session(0).metrics().lanes;
  EXPECT_TRUE(std::any_of(lanes.begin(), lanes.end(), [](const LaneMetrics& lane) {
    return lane.receiver == 1 && lane.no_room > 0;
  }));
}

// --- claims

TEST_F(ShuffleApi, a_claim_is_the_only_one_and_closes_its_ring_to_others) {
  open(1, {{"ring.per_lane", "1"}});
  const QueryId id = session().begin_query();
  Shuffle a = open_shuffle(worker(), spec(id, 0, 0));
  Shuffle b = open_shuffle(worker(), spec(id, 1, 0));
  RowClaim claim;
  ASSERT_EQ(a.try_claim(0, 100, claim), Outcome::done);
  RowClaim second;
  EXPECT_EQ(b.try_claim(0, 100, second), Outcome::failed);
  EXPECT_EQ(b.status().code(), Code::wrong_state);
  EXPECT_EQ(b.try_send(0, filled(10, 1)), Outcome::failed) << "the same ring";
  EXPECT_EQ(b.status().code(), Code::wrong_state);
  EXPECT_EQ(a.try_send(0, filled(10, 1)), Outcome::failed);
  EXPECT_EQ(a.try_finish(), Outcome::failed);
  std::memset(claim.data().data(), 7, 100);
  EXPECT_EQ(claim.commit(101).code(), Code::invalid_argument);
  EXPECT_TRUE(claim.commit(50).ok());
  ASSERT_EQ(a.try_claim(0, 100, claim), Outcome::done);
  claim.abort();
  claim.abort();
  EXPECT_EQ(b.try_send(0, filled(10, 1)), Outcome::done);
  EXPECT_EQ(a.finish(), Outcome::done);
  Batch batch;
  ASSERT_EQ(a.take(batch), Outcome::done);
  EXPECT_EQ(batch.row_count(), 1u);
  EXPECT_EQ((*batch.each_row().begin()).size(), 50u);
  batch.release();
  EXPECT_EQ(a.take(batch), Outcome::end_of_stream);
}

TEST_F(ShuffleApi, a_claim_outlives_its_shuffle_and_session) {
  for (const size_t size : {size_t{100}, size_t{100'000}}) {
    for (const bool commit : {false, true}) {
      open(1);
      const QueryId id = session().begin_query();
      RowClaim claim;
      {
        Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 0));
        ASSERT_EQ(shuffle.claim(0, size, claim), Outcome::done);
      }
      if (!commit) cluster_.reset();
      if (commit) {
        EXPECT_EQ(claim.commit().code(), Code::wrong_state) << "the shuffle was closed";
      }
      claim.abort();
    }
  }
}

// --- opening and closing

TEST_F(ShuffleApi, a_stage_is_open_once) {
  open(1);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  EXPECT_EQ(worker().open_shuffle(spec(id, 0, 8)).status().code(), Code::invalid_argument);
  EXPECT_EQ(shuffle.finish(), Outcome::done);
  EXPECT_EQ(shuffle.finish(), Outcome::done) << "repeatable";
  EXPECT_EQ(shuffle.try_send(0, filled(8, 1)), Outcome::failed);
  EXPECT_EQ(shuffle.status().code(), Code::wrong_state);
  Batch batch;
  EXPECT_EQ(shuffle.take(batch), Outcome::end_of_stream);
  shuffle.close();
  shuffle.close();
  EXPECT_EQ(worker().open_shuffle(spec(id, 0, 8)).status().code(), Code::invalid_argument)
      << "it was closed here: rows for it are dropped";
  EXPECT_EQ(shuffle.try_send(0, filled(8, 1)), Outcome::failed);
  EXPECT_EQ(shuffle.status().code(), Code::closed);
  EXPECT_EQ(shuffle.receiver_count(), 0u);
}

TEST_F(ShuffleApi, slots_are_used_again_for_ever) {
  open(2, {{"shuffle.limit", "3"}});
  const QueryId id = session().begin_query();
  cluster_->run_workers([&](uint32_t w) {
    for (uint32_t stage = 0; stage < 60; ++stage) {
      Shuffle shuffle = open_shuffle(worker(w), spec(id, stage, 8));
      ASSERT_EQ(shuffle.send(1 - w, filled(8, static_cast<int>(stage))), Outcome::done);
      ASSERT_EQ(shuffle.finish(), Outcome::done);
      Batch batch;
      ASSERT_EQ(shuffle.take(batch), Outcome::done) << shuffle.status().to_string();
      EXPECT_EQ(batch.bytes()[0], static_cast<std::byte>(stage));
      batch.release();
      ASSERT_EQ(shuffle.take(batch), Outcome::end_of_stream);
    }
    EXPECT_EQ(worker(w).metrics().open_shuffles, 0u);
    EXPECT_EQ(worker(w).end_query(id), Outcome::done);
  });
}

TEST_F(ShuffleApi, more_shuffles_than_the_limit_are_refused) {
  open(1, {{"shuffle.limit", "2"}});
  const QueryId id = session().begin_query();
  Shuffle a = open_shuffle(worker(), spec(id, 0, 8));
  Shuffle b = open_shuffle(worker(), spec(id, 1, 8));
  const Status status = worker().open_shuffle(spec(id, 2, 8)).status();
  EXPECT_EQ(status.code(), Code::limit_exceeded);
  names(status, {"shuffle.limit = 2"});
  EXPECT_EQ(a.finish(), Outcome::done);
  a.close();
  EXPECT_TRUE(worker().open_shuffle(spec(id, 2, 8)).ok());
}

TEST_F(ShuffleApi, a_sender_closed_without_finish_cancels_its_query) {
  open(2);
  const QueryId id = session().begin_query();
  Shuffle receiver = open_shuffle(worker(1), spec(id, 0, 8, {0}, {1}));
  {
    Shuffle sender = open_shuffle(worker(0), spec(id, 0, 8, {0}, {1}));
    EXPECT_EQ(sender.send(0, filled(8, 1)), Outcome::done);
  }
  Batch batch;
  EXPECT_EQ(receiver.take(batch), Outcome::failed);
  EXPECT_EQ(receiver.status().code(), Code::query_cancelled);
  names(receiver.status(), {"worker 0", "stage 0", "without finish"});
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
      for (uint32_t r = 0; r < 3; ++r) {
        const Outcome sent = shuffle.send(r, filled(i % 50, 1));
        EXPECT_TRUE(sent == Outcome::done || fails);
      }
      if (fails && i % 3 == w) shuffle.cancel("a test");
      if (!fails) {
        EXPECT_EQ(shuffle.finish(), Outcome::done);
        Batch batch;
        while (shuffle.take(batch) == Outcome::done) {
        }
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
    session(n).worker(0).hand_over();
  }
  expect_working();
}

// --- threads and the session's end

TEST_F(ShuffleApi, another_thread_is_refused_until_the_worker_is_handed_over) {
  open(1);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  std::thread([&] {
    EXPECT_EQ(shuffle.try_send(0, filled(8, 1)), Outcome::failed);
    EXPECT_EQ(worker().open_shuffle(spec(id, 1, 8)).status().code(), Code::wrong_state);
    EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::failed);
    Status cause;
    EXPECT_EQ(worker().end_query(id, &cause), Outcome::failed);
    EXPECT_EQ(cause.code(), Code::wrong_state);
    names(cause, {"worker 0", "hand_over"});
  }).join();
  EXPECT_EQ(shuffle.try_send(0, filled(8, 1)), Outcome::done);
  worker().hand_over();
  std::thread([&] {
    EXPECT_EQ(shuffle.try_send(0, filled(8, 2)), Outcome::done);
    EXPECT_EQ(shuffle.finish(), Outcome::done);
    worker().hand_over();
  }).join();
  Batch batch;
  ASSERT_EQ(shuffle.take(batch), Outcome::done);
  EXPECT_EQ(batch.row_count(), 2u);
}

TEST_F(ShuffleApi, after_close_everything_says_so) {
  open(2);
  const QueryId id = session().begin_query();
  Shuffle shuffle = open_shuffle(worker(), spec(id, 0, 8));
  std::thread other([&] { EXPECT_TRUE(session(1).close().ok()); });
  EXPECT_TRUE(session().close().ok());
  EXPECT_TRUE(session().close().ok()) << "twice";
  other.join();
  Batch batch;
  EXPECT_EQ(shuffle.try_send(0, filled(8, 1)), Outcome::failed);
  EXPECT_EQ(shuffle.status().code(), Code::session_closed);
  EXPECT_EQ(shuffle.send(0, filled(8, 1)), Outcome::failed);
  EXPECT_EQ(shuffle.take(batch), Outcome::failed);
  EXPECT_EQ(shuffle.finish(), Outcome::failed);
  shuffle.flush();
  shuffle.stop();
  shuffle.cancel("too late");
  EXPECT_EQ(worker().open_shuffle(spec(id, 1, 8)).status().code(), Code::session_closed);
  EXPECT_EQ(worker().wait_until([] { return true; }), Outcome::failed);
  Status cause;
  EXPECT_EQ(worker().end_query(id, &cause), Outcome::failed);
  EXPECT_EQ(cause.code(), Code::session_closed);
  session().cancel_query(id, "too late");
  EXPECT_EQ(session().metrics().workers.size(), 1u);
  shuffle.close();
}

TEST_F(ShuffleApi, closing_ends_the_waits_of_other_threads) {
  open(2, {{"cluster.workers", "3,1"}, {"wait.sleep_ms", "1000"}});
  const QueryId id = session().begin_query();
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    Shuffle shuffle = open_shuffle(worker(0), spec(id, 0, 8));
    Batch batch;
    EXPECT_EQ(shuffle.take(batch), Outcome::failed);
    EXPECT_EQ(shuffle.status().code(), Code::session_closed) << shuffle.status().to_string();
  });
  threads.emplace_back(
      [&] { EXPECT_EQ(worker(1).wait_until([] { return false; }), Outcome::failed); });
  threads.emplace_back([&] {
    Shuffle shuffle = open_shuffle(worker(2), spec(id, 1, 8, {2}, {3}));
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done) outcome = shuffle.send(0, filled(8, 1));
    EXPECT_EQ(outcome, Outcome::failed);
  });
  Shuffle far = open_shuffle(worker(3), spec(id, 0, 8));
  for (uint32_t w = 0; w < 3; ++w) until_asleep(worker(w));
  const Status closed = session(0).close();
  EXPECT_TRUE(closed.ok()) << closed.to_string();
  for (std::thread& thread : threads) thread.join();
  // The other node: this query has lost a participant, and no more.
  Batch batch;
  EXPECT_EQ(far.take(batch), Outcome::failed);
  EXPECT_EQ(far.status().code(), Code::peer_lost) << far.status().to_string();
  names(far.status(), {"node 0"});
}

TEST_F(ShuffleApi, a_batch_outlives_its_shuffle_and_session) {
  for (const bool own_node : {true, false}) {
    open(2, {{"close.timeout_ms", "50"}});
    const QueryId id = session().begin_query();
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
        EXPECT_EQ(sender.send(0, filled(sizes[i], i + 1)), Outcome::done);
        sender.flush();
        Outcome outcome;
        while ((outcome = at.try_poll(held[i])) == Outcome::would_wait)
          sender.flush();  // what did not fit into the ring follows when its worker is in a call
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
