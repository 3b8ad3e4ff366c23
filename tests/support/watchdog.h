// Watchdog: a test that hangs says where before it is killed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace faro::test {

/// Prints `state()` and aborts the process if it is not destroyed in time.
class Watchdog {
 public:
  Watchdog(std::chrono::seconds limit, std::function<std::string()> state)
      : thread_([this, limit, state = std::move(state)] {
          std::unique_lock lock(mutex_);
          if (over_.wait_for(lock, limit, [this] { return done_; })) return;
          std::fprintf(stderr, "not done within %lld s:\n%s\n",
                       static_cast<long long>(limit.count()), state().c_str());
          std::fflush(stderr);
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace faro::test
