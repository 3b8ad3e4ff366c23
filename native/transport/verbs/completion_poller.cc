#include "transport/verbs/completion_poller.h"

#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>

#include "transport/verbs/verbs_link.h"

namespace faro::transport::verbs {

CompletionPoller::~CompletionPoller() {
  if (reactor_ != nullptr) reactor_->remove(events_->descriptor());
}

void CompletionPoller::take() noexcept {
  while (!try_take()) sched_yield();
}

Status CompletionPoller::add(Reactor& reactor, VerbsLink& link) {
  if (reactor_ == nullptr) {
    FARO_RETURN_IF_ERROR(
        reactor.add(events_->descriptor(), EPOLLIN, [this](uint32_t) { on_events(); }));
    reactor_ = &reactor;
    if (busy_) spin();
  }
  take();
  links_.push_back(&link);
  if (watching_) arm_and_work(link);
  give();
  return {};
}

void CompletionPoller::remove(VerbsLink& link) noexcept {
  take();
  links_.erase(std::remove(links_.begin(), links_.end(), &link), links_.end());
  give();
}

bool CompletionPoller::poll() noexcept {
  if (!try_take()) return false;
  if (watching_ && sleeping_.load(std::memory_order_relaxed) == 0) watching_ = false;
  bool any = false;
  for (VerbsLink* link : links_) any |= work(*link);
  give();
  return any;
}

void CompletionPoller::worker_sleeps() noexcept {
  sleeping_.fetch_add(1, std::memory_order_relaxed);
  take();
  watching_ = true;
  for (VerbsLink* link : links_) {
    if (!link->poll_state().armed) arm_and_work(*link);
  }
  give();
}

void CompletionPoller::worker_wakes() noexcept {
  sleeping_.fetch_sub(1, std::memory_order_relaxed);
}

void CompletionPoller::watch(VerbsLink& link) noexcept {
  take();
  if (link.poll_state().armed) {
    work(link);
  } else {
    arm_and_work(link);
  }
  give();
}

// Everything that is there, and what it makes possible.
bool CompletionPoller::work(VerbsLink& link) noexcept {
  const bool any = link.take_completions();
  if (link.post_pending() && !link.poll_state().armed) arm_and_work(link);
  return any;
}

void CompletionPoller::arm_and_work(VerbsLink& link) noexcept {
  link.poll_state().armed = true;
  link.arm();
  link.take_completions();
  link.post_pending();
}

// Threads: network thread.
void CompletionPoller::on_events() noexcept {
  while (VerbsLink* link = events_->next()) {
    take();
    link->poll_state().armed = false;
    link->count_event();
    if (watching_) {
      arm_and_work(*link);
    } else {
      work(*link);
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
