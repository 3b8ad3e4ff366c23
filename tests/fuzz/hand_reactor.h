// A reactor that waits for nothing: a target calls what it wants to happen. Its clock is set by hand.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "transport/transport.h"

namespace faro::fuzz {

/// Threads: one.
class HandReactor final : public transport::Reactor {
 public:
  Status add(int fd, uint32_t, Handler handler) override {
    handlers_[fd] = std::move(handler);
    return {};
  }
  void change(int, uint32_t) override {}
  void remove(int fd) noexcept override { handlers_.erase(fd); }
  void defer(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  const base::Clock& clock() const override { return clock_; }

  /// As if these events had come for every descriptor.
  void tell_all(uint32_t events) {
    for (const auto& [fd, handler] : std::map(handlers_)) {
      if (handlers_.count(fd) != 0) handler(events);
    }
  }
  /// Runs what was deferred; returns whether there was anything.
  bool run_tasks() {
    const std::vector<std::function<void()>> tasks = std::exchange(tasks_, {});
    for (const auto& task : tasks) task();
    return !tasks.empty();
  }
  void advance(base::Nanoseconds by) { clock_.advance(by); }

 private:
  base::ManualClock clock_;
  std::map<int, Handler> handlers_;
  std::vector<std::function<void()>> tasks_;
};

}  // namespace faro::fuzz
