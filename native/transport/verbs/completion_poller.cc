#include "transport/verbs/completion_poller.h"

#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>

#include "base/return_if_error.h"
#include "transport/verbs/verbs_channel.h"

namespace faro::transport::verbs {

CompletionPoller::~CompletionPoller() {
  if (reactor_ != nullptr) reactor_->remove(events_->descriptor());
}

void CompletionPoller::take() noexcept {
  while (!try_take()) sched_yield();
}

Status CompletionPoller::add(Reactor& reactor, VerbsChannel& channel) {
  if (reactor_ == nullptr) {
    FARO_RETURN_IF_ERROR(
        reactor.add(events_->descriptor(), EPOLLIN, [this](uint32_t) { on_events(); }));
    reactor_ = &reactor;
    if (busy_) spin();
  }
  take();
  channel.poll_state() = {};
  channels_.push_back(&channel);
  if (watching_) arm_and_work(channel);
  give();
  return {};
}

void CompletionPoller::remove(VerbsChannel& channel) noexcept {
  take();
  channels_.erase(std::remove(channels_.begin(), channels_.end(), &channel), channels_.end());
  give();
}

void CompletionPoller::fail_all(const Status& cause) noexcept {
  take();
  for (VerbsChannel* channel : channels_) channel->fail(cause);
  give();
}

bool CompletionPoller::poll() noexcept {
  if (!try_take()) return false;
  if (watching_ && sleeping_.load(std::memory_order_relaxed) == 0) watching_ = false;
  bool any = false;
  for (VerbsChannel* channel : channels_) any |= work(*channel);
  give();
  return any;
}

void CompletionPoller::worker_sleeps() noexcept {
  sleeping_.fetch_add(1, std::memory_order_relaxed);
  take();
  watching_ = true;
  for (VerbsChannel* channel : channels_) {
    if (!channel->poll_state().armed) arm_and_work(*channel);
  }
  give();
}

void CompletionPoller::worker_wakes() noexcept {
  sleeping_.fetch_sub(1, std::memory_order_relaxed);
}

void CompletionPoller::watch(VerbsChannel& channel) noexcept {
  take();
  if (channel.poll_state().armed) {
    work(channel);
  } else {
    arm_and_work(channel);
  }
  give();
}

// Handles all completions that have arrived, and posts what they make possible.
bool CompletionPoller::work(VerbsChannel& channel) noexcept {
  const bool any = channel.take_completions();
  if (channel.post_pending() && !channel.poll_state().armed) arm_and_work(channel);
  return any;
}

void CompletionPoller::arm_and_work(VerbsChannel& channel) noexcept {
  channel.poll_state().armed = true;
  channel.arm();
  channel.take_completions();
  channel.post_pending();
}

// Threads: network thread.
void CompletionPoller::on_events() noexcept {
  while (VerbsChannel* channel = events_->next()) {
    take();
    channel->poll_state().armed = false;
    channel->count_event();
    if (watching_) {
      arm_and_work(*channel);
    } else {
      work(*channel);
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
