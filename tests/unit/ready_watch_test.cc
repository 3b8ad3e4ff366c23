#include "ring/ready_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <thread>

namespace faro::ring {
namespace {

constexpr base::Nanoseconds kLong = 30'000'000'000;
constexpr int kLimitMs = 8'000;

bool is_readable(int descriptor, int timeout_ms) {
  pollfd look{descriptor, POLLIN, 0};
  return poll(&look, 1, timeout_ms) == 1;
}

// The thread goes on sleeping on the doorbell of a worker that it has told: a ring wakes it before it knows that the worker
// is armed, and in vain.
TEST(ReadyWatch, tells_of_a_ring_between_the_arming_of_a_doorbell_and_its_being_watched) {
  ReadyWatch watch({.keep_alive = [] { return nullptr; },
                    .closed_status = [] { return Status(Code::closed, "closed"); }});
  DoorbellLine line{};
  Readiness worker(watch, line, [] {});
  Doorbell bell(&line);
  const int descriptor = worker.descriptor().value();
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(worker.reset().ok());
    ASSERT_FALSE(is_readable(descriptor, 0));
    bell.arm();
    ring_doorbell(line);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // so that the thread sleeps again
    ASSERT_TRUE(worker.watch(kLong).ok());
    ASSERT_TRUE(is_readable(descriptor, kLimitMs)) << "turn " << turn;
  }
  watch.stop();
}

}  // namespace
}  // namespace faro::ring
