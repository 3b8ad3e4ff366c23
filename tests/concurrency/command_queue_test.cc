// The commands that other threads give the network thread: their order, and that they wake it.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "links/command_queue.h"
#include "links/epoll_reactor.h"
#include "support/expect.h"

namespace faro::links {
namespace {

TEST(Commands, of_each_thread_keep_their_order_also_when_the_queue_overflows) {
  constexpr int kThreads = 3;
  constexpr int kEach = 20'000;  // the consumer begins late: most of them overflow
  MpscCommandQueue queue;
  std::vector<int> next(kThreads, 0);
  bool in_order = true;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i)
        queue.push([&, t, i] { in_order = in_order && next[static_cast<size_t>(t)]++ == i; });
    });
  }
  int taken = 0;
  std::vector<MpscCommandQueue::Command> commands;
  while (taken < kThreads * kEach) {
    if (queue.empty()) {
      std::this_thread::yield();
      continue;
    }
    commands.clear();
    queue.take(commands);
    for (auto& command : commands) command();
    taken += static_cast<int>(commands.size());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(in_order);
  EXPECT_TRUE(queue.empty());
}

TEST(Commands, wake_a_sleeping_reactor) {
  auto reactor = test::value_of(EpollReactor::create(base::SystemClock::instance()));
  int ran = 0;
  constexpr int kRounds = 500;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      std::atomic<bool> done{false};
      reactor->defer([&] {
        ++ran;
        done.store(true, std::memory_order_release);
      });
      while (!done.load(std::memory_order_acquire)) std::this_thread::yield();
    }
    reactor->defer([&] { ran = -ran; });
  });
  while (ran >= 0) reactor->run_once(base::kForever);  // a lost wake-up would hang here
  other.join();
  EXPECT_EQ(ran, -kRounds);
}

TEST(Commands, that_nobody_took_are_dropped) {
  auto held = std::make_shared<int>(1);
  {
    MpscCommandQueue queue;
    for (int i = 0; i < 10'000; ++i) queue.push([held] {});
    EXPECT_GT(held.use_count(), 10'000);
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace faro::links
