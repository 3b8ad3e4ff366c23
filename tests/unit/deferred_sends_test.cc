#include "transport/deferred_sends.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "support/test_reactor.h"

namespace faro::transport {
namespace {

constexpr int kWaitMs = 10'000;  // for a timer of at most kLongestTimer

class CountingPath final : public DeferredSends::Path {
 public:
  void send_deferred() override { ++sent; }
  int sent = 0;
};

class DeferredSendsTimer : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(deferred_.add(reactor_, path_).ok());
    path_.sent = 0;
  }
  void TearDown() override { deferred_.remove(path_); }

  void note() { deferred_.note(clock_.now_ns()); }

  // A turn of the timer in which a worker flushes by itself.
  void turn_with_a_flush() {
    note();
    deferred_.flush();
    ASSERT_TRUE(reactor_.run_once(kWaitMs));
  }

  // A turn of the timer in which none does.
  void turn_without() {
    note();
    clock_.advance(DeferredSends::kTimer);
    ASSERT_TRUE(reactor_.run_once(kWaitMs));
  }

  base::ManualClock clock_;
  test::TestReactor reactor_{clock_};
  CountingPath path_;
  DeferredSends deferred_;
};

TEST_F(DeferredSendsTimer, sends_what_every_worker_forgot) {
  turn_without();
  EXPECT_EQ(path_.sent, 1);
  turn_without();
  EXPECT_EQ(path_.sent, 2);
}

TEST_F(DeferredSendsTimer, takes_twice_as_long_while_workers_flush_by_themselves_up_to_a_limit) {
  base::Nanoseconds expected = DeferredSends::kTimer;
  for (int turn = 0; turn < 8; ++turn) {
    EXPECT_EQ(deferred_.timer_after(), expected) << "turn " << turn;
    turn_with_a_flush();
    expected = std::min(2 * expected, DeferredSends::kLongestTimer);
  }
  EXPECT_EQ(deferred_.timer_after(), DeferredSends::kLongestTimer);
}

TEST_F(DeferredSendsTimer, is_short_again_once_it_found_something_forgotten) {
  turn_with_a_flush();
  turn_with_a_flush();
  turn_without();
  EXPECT_EQ(deferred_.timer_after(), DeferredSends::kTimer);
}

TEST_F(DeferredSendsTimer, does_not_count_what_was_deferred_just_before_it_as_forgotten) {
  turn_with_a_flush();
  note();
  ASSERT_TRUE(reactor_.run_once(kWaitMs));
  EXPECT_EQ(deferred_.timer_after(), 4 * DeferredSends::kTimer);
}

}  // namespace
}  // namespace faro::transport
