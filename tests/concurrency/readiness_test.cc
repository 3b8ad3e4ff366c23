// Workers under an event loop: what makes a descriptor readable, and calls a callback. Nothing here waits but by poll and
// epoll_wait, and every worker's own longest sleep is far above their limit: an event that is lost is a failure.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <semaphore>
#include <string>
#include <thread>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

constexpr std::chrono::seconds kLimit{8};
constexpr int kLimitMs = 8'000;
const SettingList kSleepLong = {{"wait.sleep_ms", "10000"}, {"cluster.workers", "2"}};

bool is_readable(int descriptor, int timeout_ms = 0) {
  pollfd look{descriptor, POLLIN, 0};
  return poll(&look, 1, timeout_ms) == 1;
}

bool nothing() { return false; }

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// One node with two workers, without queries: nothing happens to them by itself. Nor is a ring that is full spilled because
/// time passes.
class ReadyWorkers : public ShuffleApi {
 protected:
  void SetUp() override {
    SettingList settings = kSleepLong;
    settings.emplace_back("drain.delay_us", "10000000");
    open(1, settings);
  }
};

TEST_F(ReadyWorkers, wake_makes_the_descriptor_readable_and_the_next_arm_resets_it) {
  const int descriptor = worker().ready_descriptor().value();
  EXPECT_EQ(worker().ready_descriptor().value(), descriptor);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_EQ(worker().arm(nothing), Outcome::would_wait);
    EXPECT_FALSE(is_readable(descriptor));
    worker().wake();
    ASSERT_TRUE(is_readable(descriptor, kLimitMs));
  }
  ASSERT_EQ(worker().arm([] { return true; }), Outcome::done);
  EXPECT_FALSE(is_readable(descriptor));
}

TEST_F(ReadyWorkers, two_workers_in_one_epoll_are_told_apart) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  for (uint32_t w = 0; w < 2; ++w) {
    epoll_event interest{EPOLLIN, {.u32 = w}};
    ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, worker(w).ready_descriptor().value(), &interest), 0);
    ASSERT_EQ(worker(w).arm(nothing), Outcome::would_wait);
  }
  for (const uint32_t woken : {1u, 0u, 1u}) {
    worker(woken).wake();
    std::array<epoll_event, 2> events{};
    ASSERT_EQ(epoll_wait(epoll, events.data(), events.size(), kLimitMs), 1);
    EXPECT_EQ(events[0].data.u32, woken);
    ASSERT_EQ(worker(woken).arm(nothing), Outcome::would_wait);
  }
  close(epoll);
}

// A look is before the doorbell is armed, another one after: what comes in between is not missed.
TEST_F(ReadyWorkers, a_wake_between_the_looks_is_an_event) {
  const int descriptor = worker().ready_descriptor().value();
  int looks = 0;
  const auto progress = [&] {
    if (++looks == 2) worker().wake();
    return false;
  };
  ASSERT_EQ(worker().arm(progress), Outcome::would_wait);
  ASSERT_EQ(looks, 2) << "nothing arrived";
  EXPECT_TRUE(is_readable(descriptor, kLimitMs));
  EXPECT_EQ(worker().arm([&] { return --looks == 0; }), Outcome::done);
  EXPECT_FALSE(is_readable(descriptor));
}

TEST_F(ReadyWorkers, a_callback_is_called_once_for_each_arm_that_was_not_taken_back) {
  std::counting_semaphore<> called(0);
  std::atomic<int> calls{0};
  ASSERT_TRUE(worker()
                  .on_ready([&] {
                    ++calls;
                    called.release();
                  })
                  .ok());
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_EQ(worker().arm(nothing), Outcome::would_wait);
    ASSERT_EQ(worker().arm(nothing), Outcome::would_wait);
    worker().wake();
    worker().wake();
    ASSERT_TRUE(called.try_acquire_for(kLimit));
  }
  EXPECT_TRUE(session().close().ok());
  EXPECT_EQ(calls, 3);
}

TEST_F(ReadyWorkers, closing_the_session_makes_all_that_are_armed_ready) {
  std::array<int, 2> descriptors{};
  for (uint32_t w = 0; w < 2; ++w) {
    descriptors[w] = worker(w).ready_descriptor().value();
    ASSERT_EQ(worker(w).arm(nothing), Outcome::would_wait);
  }
  EXPECT_TRUE(session().close().ok());
  for (uint32_t w = 0; w < 2; ++w) {
    EXPECT_TRUE(is_readable(descriptors[w])) << "when close has returned";
    expect_failed(worker(w).arm(nothing), worker(w), Code::session_closed);
  }
}

TEST_F(ReadyWorkers, a_callback_may_close_the_session) {
  std::binary_semaphore closed(0);
  ASSERT_TRUE(worker()
                  .on_ready([&] {
                    EXPECT_TRUE(session().close().ok());
                    closed.release();
                  })
                  .ok());
  ASSERT_EQ(worker().arm(nothing), Outcome::would_wait);
  worker().wake();
  ASSERT_TRUE(closed.try_acquire_for(kLimit));
  expect_failed(worker().arm(nothing), worker(), Code::session_closed);
}

TEST_F(ReadyWorkers, who_arms_nothing_has_no_thread_for_it_and_close_ends_it) {
  const std::ptrdiff_t before = threads_of_this_process();
  ASSERT_TRUE(worker(0).ready_descriptor().ok());
  ASSERT_TRUE(worker(1).on_ready([] {}).ok());
  EXPECT_EQ(threads_of_this_process(), before);
  for (uint32_t w = 0; w < 2; ++w) ASSERT_EQ(worker(w).arm(nothing), Outcome::would_wait);
  EXPECT_EQ(threads_of_this_process(), before + 1);
  EXPECT_TRUE(session().close().ok());
  EXPECT_LT(threads_of_this_process(), before);
}

TEST_F(ReadyWorkers, what_would_tell_nobody_or_two_is_refused) {
  expect_failed(worker().arm(nothing), worker(), Code::wrong_state,
                {"ready_descriptor()", "on_ready()"});
  ASSERT_TRUE(worker(0).ready_descriptor().ok());
  EXPECT_EQ(worker(0).on_ready([] {}).code(), Code::wrong_state);
  EXPECT_EQ(worker(1).on_ready({}).code(), Code::invalid_argument);
  ASSERT_TRUE(worker(1).on_ready([] {}).ok());
  EXPECT_EQ(worker(1).ready_descriptor().status().code(), Code::wrong_state);
  Worker& none = session().worker(2);
  EXPECT_EQ(none.ready_descriptor().status().code(), Code::invalid_argument);
  EXPECT_EQ(none.on_ready([] {}).code(), Code::invalid_argument);
  EXPECT_EQ(none.arm(nothing), Outcome::failed);
}

TEST_F(ReadyWorkers, conditions_may_not_arm) {
  ASSERT_TRUE(worker().ready_descriptor().ok());
  EXPECT_EQ(worker().arm([&] { return worker().arm(nothing) == Outcome::failed; }), Outcome::done);
  EXPECT_EQ(worker().status().code(), Code::wrong_state);
}

using ReadySleep = ShuffleApi;

TEST_F(ReadySleep, the_longest_sleep_ends_by_an_event) {
  open(1, {{"wait.sleep_ms", "20"}});
  const int descriptor = worker().ready_descriptor().value();
  ASSERT_EQ(worker().arm(nothing), Outcome::would_wait);
  EXPECT_TRUE(is_readable(descriptor, kLimitMs));
}

// Its own ring is full: a turn would receive next, and a call that does nothing else meanwhile must not wait for that.
TEST_F(ReadyWorkers, a_call_may_do_what_a_turn_leaves_to_the_next_one) {
  ASSERT_TRUE(worker().ready_descriptor().ok());
  Shuffle shuffle = open_shuffle(worker(), spec(session().begin_query(), 0, 8, {0}, {0}));
  const ShuffleSender sender = shuffle.sender().value();
  const auto send = [&] { return sender.send(0, filled(8, 1), Wait::none()) == Outcome::done; };
  while (send()) {
  }
  EXPECT_EQ(worker().arm(send, Progress::turn), Outcome::would_wait);
  EXPECT_EQ(worker().arm(send, Progress::call), Outcome::done);
}

/// Two workers, of one node or of two, both of which this thread uses: worker 0 as an event loop does.
class ReadyOver : public ShuffleApi, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    SettingList settings = kSleepLong;
    const bool local = GetParam() == "local";
    if (!local)
      settings.insert(settings.end(), {{"transport", GetParam()}, {"cluster.workers", "1"}});
    open(local ? 1 : 2, settings);
    descriptor_ = worker(0).ready_descriptor().value();
    query_ = session().begin_query();
  }
  /// Worker 0 is armed; `other` may be something that makes it ready, in pieces. Then until `turn` has done it.
  void drive(const std::function<bool()>& turn, const std::function<void()>& other) {
    for (;;) {
      const Outcome outcome = worker(0).arm(turn);
      if (outcome == Outcome::done) return;
      ASSERT_EQ(outcome, Outcome::would_wait);
      other();
      ASSERT_TRUE(is_readable(descriptor_, kLimitMs));
    }
  }
  /// From worker `from` to the other one, at both.
  struct Ends {
    Shuffle from;
    Shuffle to;
    ShuffleSender sender = from.sender().value();
    ShuffleReceiver receiver = to.receiver().value();
  };
  Ends open_ends(uint32_t from) {
    const ShuffleSpec what = spec(query_, from, 8, {from}, {1 - from});
    return {open_shuffle(worker(from), what), open_shuffle(worker(1 - from), what)};
  }

  int descriptor_ = -1;
  QueryId query_;
};

TEST_P(ReadyOver, a_row_makes_its_receiver_ready) {
  Ends ends = open_ends(1);
  for (int row = 0; row < 3; ++row) {
    Batch batch;
    bool sent = false;
    drive([&] { return ends.receiver.receive(batch, Wait::none()) == Outcome::done; },
          [&] {
            if (std::exchange(sent, true)) return;
            ASSERT_EQ(ends.sender.send(0, filled(8, row), Wait::none()), Outcome::done);
            EXPECT_EQ(ends.sender.flush(), Outcome::done);
          });
    EXPECT_TRUE(sent) << "it was armed before";
    ASSERT_EQ(batch.row_count(), 1u);
    EXPECT_EQ(batch.bytes()[0], static_cast<std::byte>(row));
  }
}

// Over TCP a row comes when the network has it: then the thread looks as whoever waits in a call does.
TEST_P(ReadyOver, arming_after_a_row_has_come_answers_done) {
  Ends ends = open_ends(1);
  ASSERT_EQ(ends.sender.send(0, filled(8, 1), Wait::none()), Outcome::done);
  EXPECT_EQ(ends.sender.flush(), Outcome::done);
  Batch batch;
  ASSERT_EQ(ends.receiver.receive(batch), Outcome::done);
  batch.release();
  ASSERT_EQ(ends.sender.finish(), Outcome::done);
  ASSERT_EQ(ends.receiver.receive(batch), Outcome::end_of_stream);
  EXPECT_EQ(worker(0).arm([&] {
    return ends.receiver.receive(batch, Wait::none()) == Outcome::end_of_stream;
  }),
            Outcome::done);
  EXPECT_FALSE(is_readable(descriptor_));
}

TEST_P(ReadyOver, room_makes_its_sender_ready) {
  Ends ends = open_ends(0);
  uint64_t sent = 0;
  const auto send = [&] {
    return ends.sender.send(0, filled(8, 1), Wait::none()) == Outcome::done;
  };
  while (send()) ++sent;
  uint64_t received = 0;
  const auto receive_some = [&] {
    Batch batch;
    do {
      if (ends.receiver.receive(batch, Wait::none()) == Outcome::done)
        received += batch.row_count();
      batch.release();
    } while (!is_readable(descriptor_));
  };
  drive(send, receive_some);
  EXPECT_GT(received, 0u);
}

TEST_P(ReadyOver, the_end_of_a_query_makes_whoever_ends_it_ready) {
  Outcome ended = Outcome::would_wait;
  bool other_has_ended = false;
  drive(
      [&] {
        ended = worker(0).end_query(query_, Wait::none());
        return ended != Outcome::would_wait;
      },
      [&] {
        if (std::exchange(other_has_ended, true)) return;
        EXPECT_EQ(worker(1).end_query(query_), Outcome::done);
      });
  EXPECT_EQ(ended, Outcome::done);
  EXPECT_TRUE(other_has_ended);
}

TEST_P(ReadyOver, a_failure_makes_its_workers_ready) {
  Ends ends = open_ends(1);
  Batch batch;
  Outcome outcome = Outcome::would_wait;
  bool cancelled = false;
  drive(
      [&] {
        outcome = ends.receiver.receive(batch, Wait::none());
        return outcome != Outcome::would_wait;
      },
      [&] {
        if (std::exchange(cancelled, true)) return;
        EXPECT_TRUE(session().cancel_query(query_, "not needed").ok());
      });
  EXPECT_EQ(outcome, Outcome::failed);
  EXPECT_EQ(ends.receiver.status().code(), Code::query_cancelled);
}

TEST_P(ReadyOver, a_worker_that_holds_a_batch_is_not_armed) {
  Ends ends = open_ends(1);
  ASSERT_EQ(ends.sender.send(0, filled(8, 1), Wait::none()), Outcome::done);
  EXPECT_EQ(ends.sender.flush(), Outcome::done);
  Batch batch;
  while (ends.receiver.receive(batch, Wait::none()) != Outcome::done) std::this_thread::yield();
  EXPECT_EQ(worker(0).arm(nothing), Outcome::holding);
  EXPECT_FALSE(is_readable(descriptor_));
}

INSTANTIATE_TEST_SUITE_P(Transports, ReadyOver, testing::Values("local", "shm", "tcp"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace faro::test
