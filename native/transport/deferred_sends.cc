#include "transport/deferred_sends.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace faro::transport {

DeferredSends::~DeferredSends() {
  if (reactor_ != nullptr) reactor_->remove(timer_.get());
}

Status DeferredSends::open(Reactor& reactor) {
  timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid()) {
    return base::error(Code::system_error, "timerfd_create: {}", std::strerror(errno));
  }
  FARO_RETURN_IF_ERROR(reactor.add(timer_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(timer_.get(), &count, sizeof count);
    on_timer();
  }));
  reactor_ = &reactor;
  return Status::Ok();
}

void DeferredSends::start_timer() noexcept {
  itimerspec once{};
  once.it_value.tv_nsec = timer_after();
  timerfd_settime(timer_.get(), 0, &once, nullptr);  // fails for bad arguments only
}

void DeferredSends::on_timer() noexcept {
  const base::Nanoseconds since = since_.load(std::memory_order_relaxed);
  const bool forgotten = since != 0 && reactor_->clock().now_ns() - since >= kTimer / 2;
  timer_after_.store(forgotten ? kTimer : std::min(2 * timer_after(), kLongestTimer),
                     std::memory_order_relaxed);
  armed_.store(false, std::memory_order_seq_cst);  // T1
  flush();
}

void DeferredSends::take() noexcept {
  while (flushing_.exchange(true, std::memory_order_seq_cst)) sched_yield();
}

Status DeferredSends::add(Reactor& reactor, Path& path) {
  if (reactor_ == nullptr) FARO_RETURN_IF_ERROR(open(reactor));
  take();
  paths_.push_back(&path);
  give();
  flush();  // of those who found the right taken
  return Status::Ok();
}

void DeferredSends::remove(Path& path) noexcept {
  take();
  paths_.erase(std::remove(paths_.begin(), paths_.end(), &path), paths_.end());
  give();
  flush();
}

void DeferredSends::note(base::Nanoseconds now) noexcept {
  base::Nanoseconds since = 0;
  if (since_.compare_exchange_strong(since, now, std::memory_order_seq_cst)) {  // D2
    if (!armed_.exchange(true, std::memory_order_seq_cst)) start_timer();       // D3
    return;
  }
  if (now > since && now - since >= kLimit) flush();
}

void DeferredSends::flush() noexcept {
  while (since_.load(std::memory_order_seq_cst) != 0) {               // F5
    if (flushing_.exchange(true, std::memory_order_seq_cst)) return;  // F1
    since_.store(0, std::memory_order_seq_cst);                       // F2
    for (Path* path : paths_) path->send_deferred();                  // F3
    give();                                                           // F4
  }
}

}  // namespace faro::transport
