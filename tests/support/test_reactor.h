// A Reactor over epoll for tests: driven by hand, or by one thread.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transport/transport.h"

namespace faro::test {

/// Threads: defer any; all else one at a time. Blocks: run_once, at most as long as it is told.
class TestReactor final : public transport::Reactor {
 public:
  explicit TestReactor(const base::Clock& clock = base::SystemClock::instance())
      : clock_(clock),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = event_.get();
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &event);
  }

  Status add(int fd, uint32_t epoll_events, Handler handler) override {
    handlers_[fd] = std::make_shared<Handler>(std::move(handler));
    return control(EPOLL_CTL_ADD, fd, epoll_events);
  }
  void change(int fd, uint32_t epoll_events) override {
    (void)control(EPOLL_CTL_MOD, fd, epoll_events);
  }
  void remove(int fd) noexcept override {
    if (handlers_.erase(fd) > 0) (void)control(EPOLL_CTL_DEL, fd, 0);
  }
  void defer(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = write(event_.get(), &one, sizeof one);
  }
  const base::Clock& clock() const override { return clock_; }

  /// Handles what is ready, waiting for it at most that long. Returns whether there was anything.
  bool run_once(int wait_ms) {
    epoll_event events[16];
    const int count = epoll_wait(epoll_.get(), events, 16, wait_ms);
    bool worked = false;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == event_.get()) {
        worked |= run_tasks();
        continue;
      }
      const auto found = handlers_.find(events[i].data.fd);
      if (found == handlers_.end()) continue;                  // removed by a handler of this round
      const std::shared_ptr<Handler> handler = found->second;  // alive also if it removes itself
      (*handler)(events[i].events);
      worked = true;
    }
    return worked;
  }
  /// Handles what is ready until `done`. False if it takes too long.
  template <typename Done>
  bool run_until(Done&& done) {
    const base::Clock& clock = base::SystemClock::instance();
    const base::Nanoseconds limit = clock.now_ns() + 30'000'000'000;
    while (!done()) {
      if (clock.now_ns() > limit) return false;
      run_once(1);
    }
    return true;
  }

 private:
  Status control(int operation, int fd, uint32_t epoll_events) {
    epoll_event event{};
    event.events = epoll_events;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), operation, fd, &event) == 0) return {};
    return {Code::system_error, std::strerror(errno)};
  }
  bool run_tasks() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (auto& task : tasks) {
      if (task) task();
    }
    return !tasks.empty();
  }

  const base::Clock& clock_;
  const base::UniqueFd epoll_;
  const base::UniqueFd event_;
  std::map<int, std::shared_ptr<Handler>> handlers_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
};

}  // namespace faro::test
