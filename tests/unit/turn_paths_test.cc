// Turns: what a path may rely on whose rows are held, or that leaves while another thread sends what is due.
#include "transport/schedule/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace faro::transport::schedule {
namespace {

constexpr uint32_t kThreeNodes = 3;
constexpr PhaseSettings kSmallTurns{
    .turn_bytes = 4096, .from_bytes = 1024, .turn_ns = 10 * base::kMillisecond};

struct KeptAlarm final : Turns::Alarm {
  void set(base::Nanoseconds at, base::Nanoseconds) noexcept override { at_ns = at; }
  base::Nanoseconds at_ns = base::kForever;
};

struct FreePath final : Turns::Path {
  void send_due() noexcept override { ++calls; }
  int calls = 0;
};

/// Stays inside send_due until it may go on.
struct HeldPath final : Turns::Path {
  void send_due() noexcept override {
    is_inside = true;
    is_inside.notify_all();
    may_go_on.wait(false);
  }
  std::atomic<bool> is_inside{false};
  std::atomic<bool> may_go_on{false};
};

// Node 0 follows node 1, and then has its first turn told.
TEST(WaitingMessage, keeps_whom_its_sender_follows_when_a_later_one_takes_its_place) {
  KeptAlarm alarm;
  FreePath paths[2];
  Turns turns(kSmallTurns, 0, kThreeNodes, alarm);
  turns.enter(1, paths[0], 0);
  turns.enter(2, paths[1], 0);
  (void)turns.ask(1, 2 * kSmallTurns.from_bytes, 1);
  TurnMessage message;
  ASSERT_TRUE(turns.take_message(1, message));
  EXPECT_EQ(message.kind, TurnMessage::Kind::follow);
  EXPECT_EQ(message.turn, 1u);
  EXPECT_FALSE(turns.take_message(1, message));
}

// Their worker may sleep, and with two nodes there is no turn to wait for: the alarm has them sent.
TEST(HeldRows, go_without_a_worker_when_none_are_held_any_more) {
  KeptAlarm alarm;
  FreePath held;
  FreePath other;
  Turns turns(kSmallTurns, 0, kThreeNodes, alarm);
  turns.enter(1, held, 0);
  turns.enter(2, other, 0);
  EXPECT_EQ(turns.ask(1, 2 * kSmallTurns.from_bytes, 1).bytes, 0u);
  EXPECT_LE(alarm.at_ns, 1 + kSmallTurns.turn_ns) << "a round has a deadline";
  turns.send_due();  // what is told of the round
  const int before = held.calls;
  turns.leave(2, other, 2);
  EXPECT_EQ(held.calls, before) << "who leaves may be inside a path";
  EXPECT_EQ(alarm.at_ns, 2u);
  turns.on_alarm(2);
  EXPECT_EQ(held.calls, before + 1);
  EXPECT_EQ(turns.ask(1, 2 * kSmallTurns.from_bytes, 2).bytes, Phases::kUnlimited);
}

class BusyPath : public testing::Test {
 protected:
  /// `held` is the path to node 1, and a thread is inside it.
  void SetUp() override {
    turns_.enter(1, held_, 0);
    turns_.enter(2, other_, 0);
    (void)turns_.ask(1, 2 * kSmallTurns.from_bytes, 1);  // a round begins, which is told
    sender_ = std::thread([this] { turns_.send_due(); });
    held_.is_inside.wait(false);
  }
  void TearDown() override {
    if (sender_.joinable()) sender_.join();
  }

  /// True: its removal waits until nobody is inside.
  bool removal_waits() {
    std::atomic<bool> is_removed{false};
    std::thread remover([&] {
      turns_.remove(1, held_, 2);
      is_removed = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const bool waits = !is_removed;
    go_on();
    remover.join();
    return waits;
  }
  void go_on() {
    held_.may_go_on = true;
    held_.may_go_on.notify_all();
  }

  KeptAlarm alarm_;
  Turns turns_{kSmallTurns, 0, kThreeNodes, alarm_};
  HeldPath held_;
  FreePath other_;
  FreePath next_;
  std::thread sender_;
};

TEST_F(BusyPath, and_others_that_become_due_meanwhile_are_served_by_the_thread_inside) {
  ASSERT_TRUE(turns_.hear(2, {TurnMessage::Kind::follow, false, 0, 0}, 1).ok());
  turns_.send_due();  // leaves it to the other thread
  go_on();
  sender_.join();
  EXPECT_EQ(other_.calls, 2) << "the word of the round, and the answer";
}

TEST_F(BusyPath, is_not_let_go_while_a_thread_is_inside) { EXPECT_TRUE(removal_waits()); }

// Its link is retired, as workers may still read its rings, and the node has another one.
TEST_F(BusyPath, is_not_let_go_while_a_thread_is_inside_though_another_has_entered) {
  turns_.leave(1, held_, 1);
  turns_.enter(1, next_, 1);
  EXPECT_TRUE(removal_waits());
}

}  // namespace
}  // namespace faro::transport::schedule
