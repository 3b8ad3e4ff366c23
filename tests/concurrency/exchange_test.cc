// Worker::exchange and QueryScope over real sessions: plans whose workers send and receive at the same time, and every way in which
// that ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/session_cluster.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kWorkers = 4;  // two on each of two nodes
const auto kNothing = [](const ShuffleSender&) { return Outcome::end_of_stream; };
const auto kIgnore = [](Batch&) {};

uint32_t receiver_of(uint64_t row, const ShuffleSender& sender) {
  return partition(FinalizerHash{}(row), sender.receiver_count());
}
Outcome send_row(const ShuffleSender& sender, uint64_t row) {
  return sender.send(receiver_of(row, sender), std::as_bytes(std::span(&row, 1)), Wait::none());
}

/// Sends the integers from `next` up to `end`, some at a time.
struct Integers {
  uint64_t next, end;
  Outcome operator()(const ShuffleSender& sender) {
    for (int i = 0; i < 100; ++i) {
      if (next == end) return Outcome::end_of_stream;
      const Outcome outcome = send_row(sender, next);
      if (outcome != Outcome::done) return outcome;
      ++next;
    }
    return Outcome::done;
  }
};

class ExchangeTest : public testing::TestWithParam<const char*> {
 protected:
  ExchangeTest()
      : cluster_(2, small_rings({{"cluster.workers", "2"},
                                 {"transport", GetParam()},
                                 {"drain.delay_us", "1"}})) {}
  void SetUp() override { ASSERT_TRUE(is_ok(cluster_.status())); }

  Shuffle open(Worker& worker, const QueryId& query, uint32_t stage = 0,
               std::vector<uint32_t> senders = {}, std::vector<uint32_t> receivers = {}) {
    return value_of(worker.open_shuffle(
        {query, stage, sizeof(uint64_t), std::move(senders), std::move(receivers)}));
  }
  /// Each worker runs part(worker, query), and ends its part with done.
  template <typename Part>
  void run(const Part& part) {
    const QueryId query = cluster_[0].begin_query();
    cluster_.run_workers([&](uint32_t w) {
      Worker& worker = cluster_.worker(w);
      part(worker, query);
      EXPECT_EQ(worker.end_query(query), Outcome::done) << worker.status().to_string();
    });
  }
  uint64_t frames_spilled() {
    uint64_t frames = 0;
    for (uint32_t w = 0; w < kWorkers; ++w) frames += cluster_.worker(w).metrics().frames_spilled;
    return frames;
  }

  SessionCluster cluster_;
};

// Far more than rings hold. With this drain delay whoever only waits to send would spill at once.
TEST_P(ExchangeTest, all_rows_come_to_their_worker_and_none_is_spilled) {
  constexpr uint64_t kRows = 20'000;
  std::atomic<uint64_t> count{0}, sum{0}, elsewhere{0};
  run([&](Worker& worker, const QueryId& query) {
    const uint32_t w = worker.number();
    Shuffle shuffle = open(worker, query);
    const auto take = [&](Batch& batch) {
      for (const uint64_t row : batch.rows<uint64_t>()) {
        ++count;
        sum += row;
        elsewhere += partition(FinalizerHash{}(row), kWorkers) != w;
      }
    };
    Integers integers{w * kRows, (w + 1) * kRows};
    const auto produce = [&](const ShuffleSender& sender) {
      EXPECT_EQ(worker.exchange(shuffle, kNothing, kIgnore), Outcome::failed)
          << "refused, and changes nothing";
      return integers(sender);
    };
    EXPECT_EQ(worker.exchange(shuffle, produce, take), Outcome::end_of_stream)
        << worker.status().to_string();
    EXPECT_EQ(worker.exchange(shuffle, produce, take), Outcome::end_of_stream) << "once more";
  });
  EXPECT_EQ(count, kWorkers * kRows);
  EXPECT_EQ(sum, kWorkers * kRows * (kWorkers * kRows - 1) / 2);
  EXPECT_EQ(elsewhere, 0u);
  EXPECT_EQ(frames_spilled(), 0u);
}

// The synthetic plan of the paper: what comes of the first shuffle is changed, and sent by the second.
TEST_P(ExchangeTest, a_worker_receives_of_one_shuffle_and_sends_to_the_next) {
  constexpr uint64_t kRows = 10'000;
  std::atomic<uint64_t> count{0}, sum{0};
  run([&](Worker& worker, const QueryId& query) {
    const uint64_t first = worker.number() * kRows;
    Shuffle shuffles[] = {open(worker, query, 0), open(worker, query, 1)};
    std::deque<uint64_t> between;
    ExchangePart parts[] = {{&shuffles[0], Integers{first, first + kRows},
                             [&](Batch& batch) {
                               for (const uint64_t row : batch.rows<uint64_t>())
                                 between.push_back(row * 3 / 2);
                             }},
                            {&shuffles[1], {}, [&](Batch& batch) {
                               for (const uint64_t row : batch.rows<uint64_t>()) {
                                 ++count;
                                 sum += row;
                               }
                             }}};
    parts[1].produce = [&](const ShuffleSender& sender) {
      for (; !between.empty(); between.pop_front()) {
        const Outcome outcome = send_row(sender, between.front());
        if (outcome != Outcome::done) return outcome;
      }
      return parts[0].ended ? Outcome::end_of_stream : Outcome::would_wait;
    };
    EXPECT_EQ(worker.exchange(parts), Outcome::end_of_stream) << worker.status().to_string();
    EXPECT_TRUE(parts[0].ended && parts[1].ended);
  });
  uint64_t expected = 0;
  for (uint64_t n = 0; n < kWorkers * kRows; ++n) expected += n * 3 / 2;
  EXPECT_EQ(count, kWorkers * kRows);
  EXPECT_EQ(sum, expected);
  EXPECT_EQ(frames_spilled(), 0u);
}

TEST_P(ExchangeTest, a_side_in_which_a_worker_takes_no_part_has_no_function) {
  constexpr uint64_t kRows = 5000;
  std::atomic<uint64_t> count{0};
  run([&](Worker& worker, const QueryId& query) {
    const uint32_t w = worker.number();
    Shuffle shuffle = open(worker, query, 0, {0, 1}, {1, 2, 3});
    const ExchangePart::Produce produce = Integers{0, kRows};
    const ExchangePart::Consume consume = [&](Batch& batch) { count += batch.row_count(); };
    const auto expect_refused = [&](const ExchangePart::Produce& p, const ExchangePart::Consume& c,
                                    const char* text) {
      expect_failed(worker.exchange(shuffle, p, c), worker, Code::wrong_state, {text, "stage 0"});
    };
    if (w == 0) expect_refused(produce, consume, "is no receiver");
    if (w == 1) expect_refused(nullptr, consume, "is a sender");
    if (w == 1) expect_refused(produce, nullptr, "is a receiver");
    if (w == 2) expect_refused(produce, consume, "is no sender");
    EXPECT_EQ(worker.exchange(shuffle, w < 2 ? produce : nullptr, w > 0 ? consume : nullptr),
              Outcome::end_of_stream)
        << worker.status().to_string();
  });
  EXPECT_EQ(count, 2 * kRows);
}

TEST_P(ExchangeTest, after_a_limit_has_passed_the_same_call_goes_on) {
  std::atomic<uint64_t> count{0}, deadlines{0};
  run([&](Worker& worker, const QueryId& query) {
    Shuffle shuffle = open(worker, query);
    Integers integers{0, 1000};
    bool may_send = false;
    const auto produce = [&](const ShuffleSender& sender) {
      return may_send ? integers(sender) : Outcome::would_wait;
    };
    const auto consume = [&](Batch& batch) { count += batch.row_count(); };
    EXPECT_EQ(worker.exchange(shuffle, produce, consume, Wait::at_most(milliseconds(1))),
              Outcome::deadline);
    ++deadlines;
    may_send = true;
    Outcome outcome;
    while ((outcome = worker.exchange(shuffle, produce, consume,
                                      Wait::at_most(std::chrono::microseconds(1)))) ==
           Outcome::deadline) {
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream) << worker.status().to_string();
    expect_failed(worker.exchange(shuffle, produce, consume, Wait::at_most(milliseconds(-1))),
                  worker, Code::invalid_argument, {"negative"});
  });
  EXPECT_EQ(count, kWorkers * 1000u);
  EXPECT_EQ(deadlines, kWorkers);
}

// An event loop makes a turn under arm(); a worker that has nothing to send yet is woken.
TEST_P(ExchangeTest, an_event_loop_makes_one_turn_at_a_time) {
  std::atomic<uint64_t> count{0};
  run([&](Worker& worker, const QueryId& query) {
    Shuffle shuffle = open(worker, query);
    std::atomic<bool> may_send{false};
    std::atomic<int> events{0};
    ASSERT_TRUE(is_ok(worker.on_ready([&] {
      ++events;
      events.notify_one();
    })));
    Integers integers{0, 3000};
    const auto produce = [&](const ShuffleSender& sender) {
      return may_send ? integers(sender) : Outcome::would_wait;
    };
    const auto consume = [&](Batch& batch) { count += batch.row_count(); };
    Outcome outcome = Outcome::done;
    const auto turn = [&] {
      outcome = worker.exchange(shuffle, produce, consume, Wait::none());
      return outcome != Outcome::would_wait;
    };
    std::thread waker;
    int seen = 0;
    while (outcome != Outcome::end_of_stream && outcome != Outcome::failed) {
      const Outcome armed = worker.arm(turn);
      if (armed != Outcome::would_wait) {
        ASSERT_EQ(armed, Outcome::done) << worker.status().to_string();
        continue;
      }
      if (!waker.joinable()) {
        waker = std::thread([&] {
          may_send = true;
          worker.wake();
        });
      }
      events.wait(seen);
      seen = events;
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream) << worker.status().to_string();
    waker.join();
  });
  EXPECT_EQ(count, kWorkers * 3000u);
}

TEST_P(ExchangeTest, who_has_nothing_to_send_yet_is_asked_again_when_it_is_woken) {
  run([&](Worker& worker, const QueryId& query) {
    Shuffle shuffle = open(worker, query);
    std::atomic<bool> may_send{false};
    std::thread waker([&] {
      if (worker.number() == 0) until_asleep(worker);
      may_send = true;
      worker.wake();
    });
    const auto produce = [&](const ShuffleSender&) {
      return may_send ? Outcome::end_of_stream : Outcome::would_wait;
    };
    EXPECT_EQ(worker.exchange(shuffle, produce, kIgnore), Outcome::end_of_stream);
    waker.join();
  });
}

TEST_P(ExchangeTest, receivers_that_stop_end_producing_alone) {
  std::atomic<uint64_t> ended{0};
  run([&](Worker& worker, const QueryId& query) {
    Shuffle shuffle = open(worker, query);
    uint64_t taken = 0;
    const auto consume = [&](Batch& batch) {
      taken += batch.row_count();
      if (taken >= 100) {
        EXPECT_EQ(shuffle.receiver()->stop(), Outcome::done);  // a LIMIT
      }
    };
    const Integers endless{0, UINT64_MAX};
    EXPECT_EQ(worker.exchange(shuffle, endless, consume), Outcome::end_of_stream)
        << worker.status().to_string();
    ++ended;
  });
  EXPECT_EQ(ended, kWorkers);
}

TEST_P(ExchangeTest, a_batch_that_is_moved_away_is_held_and_the_call_goes_on_when_it_is_released) {
  std::atomic<uint64_t> count{0}, held{0};
  run([&](Worker& worker, const QueryId& query) {
    Shuffle shuffle = open(worker, query);
    std::vector<Batch> kept;
    const auto consume = [&](Batch& batch) {
      count += batch.row_count();
      kept.push_back(std::move(batch));
    };
    Integers integers{0, 2000};
    Outcome outcome;
    while ((outcome = worker.exchange(shuffle, std::ref(integers), consume)) == Outcome::holding) {
      EXPECT_FALSE(kept.empty());
      kept.clear();
      ++held;
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream) << worker.status().to_string();
    kept.clear();
  });
  EXPECT_EQ(count, kWorkers * 2000u);
  EXPECT_GT(held, 0u);
}

// What is sent while batches are held would go to overflow, without bound.
TEST_P(ExchangeTest, while_a_batch_is_kept_nothing_is_produced) {
  run([&](Worker& worker, const QueryId& query) {
    const uint32_t w = worker.number();
    Shuffle shuffle = open(worker, query, w, {w}, {w});
    uint64_t produced = 0;
    bool ends = false;
    const auto produce = [&](const ShuffleSender& sender) {
      if (ends) return Outcome::end_of_stream;
      for (int frame = 0; frame < 3; ++frame) {
        EXPECT_EQ(send_row(sender, ++produced), Outcome::done);
        EXPECT_EQ(sender.flush(), Outcome::done);
      }
      return Outcome::done;
    };
    std::vector<Batch> kept;
    const auto keep = [&](Batch& batch) { kept.push_back(std::move(batch)); };
    EXPECT_EQ(worker.exchange(shuffle, produce, keep), Outcome::holding);
    EXPECT_EQ(kept.size(), 1u) << "at once, though there are three";
    const uint64_t before = produced;
    for (int call = 0; call < 3; ++call)
      EXPECT_EQ(worker.exchange(shuffle, produce, keep), Outcome::holding);
    EXPECT_EQ(worker.exchange(shuffle, produce, kIgnore, Wait::none()), Outcome::holding);
    EXPECT_EQ(produced, before);
    EXPECT_EQ(worker.metrics().bytes_out_overflow, 0u);
    kept.clear();
    ends = true;
    EXPECT_EQ(worker.exchange(shuffle, produce, kIgnore), Outcome::end_of_stream);
  });
}

TEST_P(ExchangeTest, refuses_a_shuffle_of_another_worker) {
  std::barrier all(kWorkers);
  Shuffle other;
  run([&](Worker& worker, const QueryId& query) {
    if (worker.number() == 1) other = open(worker, query, 0, {1}, {1});
    all.arrive_and_wait();
    if (worker.number() == 0) {
      expect_failed(worker.exchange(other, kNothing, kIgnore), worker, Code::invalid_argument,
                    {"exchange of worker 0 has a shuffle of worker 1, of stage 0"});
    }
    all.arrive_and_wait();
    if (worker.number() != 1) return;
    EXPECT_EQ(worker.exchange(other, kNothing, kIgnore), Outcome::end_of_stream);
    other.close();
  });
}

// --- failures

TEST_P(ExchangeTest, a_failed_send_ends_the_query_with_its_cause) {
  const QueryId query = cluster_[0].begin_query();
  std::barrier opened(kWorkers);
  cluster_.run_workers([&](uint32_t w) {
    Worker& worker = cluster_.worker(w);
    Shuffle shuffle = open(worker, query);
    opened.arrive_and_wait();
    const auto wrong = [&](const ShuffleSender& sender) {
      return sender.send(99, filled(8, 1), Wait::none());
    };
    const ExchangePart::Produce produce = w == 1 ? ExchangePart::Produce(wrong) : kNothing;
    EXPECT_EQ(worker.exchange(shuffle, produce, kIgnore), Outcome::failed);
    expect_contains(worker.status().message(), "receiver 99 does not exist");
    shuffle.close();
    EXPECT_EQ(worker.end_query(query), Outcome::failed);
    expect_error(worker.status(), Code::query_failed,
                 {"worker 1 failed", "receiver 99 does not exist"});
  });
}

TEST_P(ExchangeTest, an_exception_ends_the_query_and_is_thrown_on) {
  for (const bool by_produce : {true, false}) {
    const QueryId query = cluster_[0].begin_query();
    std::atomic<uint32_t> thrown{0};
    std::barrier opened(kWorkers);
    cluster_.run_workers([&](uint32_t w) {
      Worker& worker = cluster_.worker(w);
      Shuffle shuffle = open(worker, query);
      opened.arrive_and_wait();
      ExchangePart::Produce produce = Integers{0, 1000};
      ExchangePart::Consume consume = kIgnore;
      if (w == 2 && by_produce)
        produce = [](const ShuffleSender&) -> Outcome { throw std::runtime_error("no such page"); };
      if (w == 2 && !by_produce) consume = [](Batch&) { throw std::runtime_error("no such page"); };
      try {
        EXPECT_EQ(worker.exchange(shuffle, produce, consume), Outcome::failed);
      } catch (const std::runtime_error& e) {
        ++thrown;
        EXPECT_EQ(w, 2u);
        EXPECT_STREQ(e.what(), "no such page");
      }
      shuffle.close();
      EXPECT_EQ(worker.end_query(query), Outcome::failed);
      expect_error(worker.status(), Code::query_failed, {"worker 2 failed", "no such page"});
    });
    EXPECT_EQ(thrown, 1u);
  }
}

TEST_P(ExchangeTest, a_cancelled_query_fails_with_the_reason) {
  const QueryId query = cluster_[0].begin_query();
  std::barrier opened(kWorkers);
  cluster_.run_workers([&](uint32_t w) {
    Worker& worker = cluster_.worker(w);
    Shuffle shuffle = open(worker, query);
    opened.arrive_and_wait();
    const auto consume = [&](Batch&) {
      if (w == 1) {
        EXPECT_TRUE(is_ok(cluster_[0].cancel_query(query, "enough")));
      }
    };
    const Integers endless{0, UINT64_MAX};
    EXPECT_EQ(worker.exchange(shuffle, endless, consume), Outcome::failed);
    expect_error(worker.status(), Code::query_cancelled, {"enough"});
    shuffle.close();
    EXPECT_EQ(worker.end_query(query), Outcome::failed);
  });
}

TEST_P(ExchangeTest, within_its_functions_nothing_waits_and_no_other_exchange_begins) {
  run([&](Worker& worker, const QueryId& query) {
    Shuffle shuffle = open(worker, query);
    Shuffle other = open(worker, query, 1);
    const auto expect_refused = [&] {
      expect_failed(worker.exchange(other, kNothing, kIgnore, Wait::none()), worker,
                    Code::wrong_state, {"exchange is called by a function of exchange"});
      expect_failed(worker.exchange(other, kNothing, kIgnore), worker, Code::wrong_state,
                    {"exchange is called by a function of exchange"});
      Batch batch;
      expect_failed(other.receiver()->receive(batch), other, Code::wrong_state, {"Wait::none()"});
      expect_failed(worker.wait_until([] { return true; }), worker, Code::wrong_state,
                    {"Wait::none()"});
      expect_failed(other.sender()->finish(), other, Code::wrong_state, {"Wait::none()"});
    };
    Integers integers{0, 100};
    const auto produce = [&](const ShuffleSender& sender) {
      expect_refused();
      return integers(sender);
    };
    const auto consume = [&](Batch&) { expect_refused(); };
    EXPECT_EQ(worker.exchange(shuffle, produce, consume), Outcome::end_of_stream)
        << worker.status().to_string();
    EXPECT_EQ(worker.exchange(other, kNothing, kIgnore), Outcome::end_of_stream);
  });
}

TEST_P(ExchangeTest, what_it_is_given_is_checked_before_anything_is_done) {
  run([&](Worker& worker, const QueryId& query) {
    Shuffle shuffle = open(worker, query);
    const auto expect_refused = [&](std::span<ExchangePart> parts, Code code, const char* text) {
      expect_failed(worker.exchange(parts), worker, code, {text});
    };
    expect_refused({}, Code::invalid_argument, "exchange without a shuffle");
    ExchangePart none[] = {{}};
    expect_refused(none, Code::invalid_argument, "a part without a shuffle");
    Shuffle closed;
    ExchangePart not_open[] = {{&closed, kNothing, kIgnore}};
    expect_refused(not_open, Code::closed, "not open");
    const auto not_called = [](const ShuffleSender&) {
      ADD_FAILURE();
      return Outcome::done;
    };
    ExchangePart twice[] = {{&shuffle, not_called, kIgnore}, {&shuffle, not_called, kIgnore}};
    expect_refused(twice, Code::invalid_argument, "the shuffle of stage 0 twice");
    std::thread([&] {
      EXPECT_EQ(worker.exchange(shuffle, not_called, kIgnore), Outcome::failed);
    }).join();
    expect_error(worker.status(), Code::wrong_state, {"belongs to another thread"});
    EXPECT_EQ(worker.exchange(shuffle, kNothing, kIgnore), Outcome::end_of_stream);
  });
}

// --- QueryScope

TEST_P(ExchangeTest, a_scope_ends_the_part_of_its_worker) {
  const QueryId query = cluster_[0].begin_query();
  cluster_.run_workers([&](uint32_t w) {
    Worker& worker = cluster_.worker(w);
    QueryScope part(worker, query);
    Shuffle shuffle = open(worker, query);
    EXPECT_EQ(part.end(), Outcome::failed) << "a shuffle is open: nothing has ended";
    expect_error(worker.status(), Code::wrong_state, {"its shuffle of stage 0 is open"});
    EXPECT_EQ(worker.exchange(shuffle, kNothing, kIgnore), Outcome::end_of_stream);
    shuffle.close();
    EXPECT_EQ(part.end(), Outcome::done) << worker.status().to_string();
    EXPECT_EQ(part.end(), Outcome::done) << "repeatable";
  });
}

TEST_P(ExchangeTest, a_scope_that_is_left_early_fails_the_query_and_says_how) {
  enum class Way { returns, throws, fails };
  const std::pair<Way, const char*> ways[] = {
      {Way::returns, "worker 1 failed: it has left the query before its end"},
      {Way::throws, "worker 1 failed: an exception has ended its part of the query"},
      {Way::fails, "disk is full"}};
  for (const auto& [way, text] : ways) {
    const QueryId query = cluster_[0].begin_query();
    std::barrier opened(kWorkers);
    cluster_.run_workers([&, way = way, text = text](uint32_t w) {
      Worker& worker = cluster_.worker(w);
      const auto part = [&] {
        QueryScope scope(worker, query);
        Shuffle shuffle = open(worker, query);
        opened.arrive_and_wait();
        if (w == 1 && way == Way::returns) return;
        if (w == 1 && way == Way::throws) throw std::runtime_error("any");
        if (w == 1) {
          EXPECT_EQ(scope.fail(Status(Code::query_failed, text)), Outcome::failed);
          return;
        }
        EXPECT_EQ(worker.exchange(shuffle, kNothing, kIgnore), Outcome::failed);
        expect_contains(worker.status().message(), text);
        shuffle.close();
        EXPECT_EQ(scope.end(), Outcome::failed);
        expect_error(worker.status(), Code::query_failed, {text});
      };
      try {
        part();
      } catch (const std::runtime_error&) {
        EXPECT_EQ(way, Way::throws);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ExchangeTest, testing::Values("tcp", "shm"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace faro::test
