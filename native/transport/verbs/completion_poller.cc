#include "transport/verbs/completion_poller.h"

#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>

#include "base/return_if_error.h"
#include "transport/verbs/verbs_path.h"

namespace faro::transport::verbs {

CompletionPoller::~CompletionPoller() {
  if (reactor_ != nullptr) reactor_->remove(events_->descriptor());
}

void CompletionPoller::take() noexcept {
  while (!try_take()) sched_yield();
}

Status CompletionPoller::add(Reactor& reactor, VerbsPath& path) {
  if (reactor_ == nullptr) {
    FARO_RETURN_IF_ERROR(
        reactor.add(events_->descriptor(), EPOLLIN, [this](uint32_t) { on_events(); }));
    reactor_ = &reactor;
    if (busy_) spin();
  }
  take();
  path.poll_state() = {};
  paths_.push_back(&path);
  if (watching_) arm_and_work(path);
  give();
  return {};
}

void CompletionPoller::remove(VerbsPath& path) noexcept {
  take();
  paths_.erase(std::remove(paths_.begin(), paths_.end(), &path), paths_.end());
  give();
}

void CompletionPoller::fail_all(const Status& cause) noexcept {
  take();
  for (VerbsPath* path : paths_) path->fail(cause);
  give();
}

bool CompletionPoller::poll() noexcept {
  if (!try_take()) return false;
  if (watching_ && sleeping_.load(std::memory_order_relaxed) == 0) watching_ = false;
  bool any = false;
  for (VerbsPath* path : paths_) any |= work(*path);
  give();
  return any;
}

void CompletionPoller::worker_sleeps() noexcept {
  sleeping_.fetch_add(1, std::memory_order_relaxed);
  take();
  watching_ = true;
  for (VerbsPath* path : paths_) {
    if (!path->poll_state().armed) arm_and_work(*path);
  }
  give();
}

void CompletionPoller::worker_wakes() noexcept {
  sleeping_.fetch_sub(1, std::memory_order_relaxed);
}

void CompletionPoller::watch(VerbsPath& path) noexcept {
  take();
  if (path.poll_state().armed) {
    work(path);
  } else {
    arm_and_work(path);
  }
  give();
}

// Handles all completions that have arrived, and posts what they make possible.
bool CompletionPoller::work(VerbsPath& path) noexcept {
  const bool any = path.take_completions();
  if (path.post_pending() && !path.poll_state().armed) arm_and_work(path);
  return any;
}

void CompletionPoller::arm_and_work(VerbsPath& path) noexcept {
  path.poll_state().armed = true;
  path.arm();
  path.take_completions();
  path.post_pending();
}

// Threads: network thread.
void CompletionPoller::on_events() noexcept {
  while (VerbsPath* path = events_->next()) {
    take();
    path->poll_state().armed = false;
    path->count_event();
    if (watching_) {
      arm_and_work(*path);
    } else {
      work(*path);
    }
    give();
  }
}

void CompletionPoller::spin() {
  poll();
  reactor_->defer([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->spin();
  });
}

}  // namespace faro::transport::verbs
