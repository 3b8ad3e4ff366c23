#include "transport/tcp/node_turns.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace faro::transport::tcp {

NodeTurns::~NodeTurns() {
  if (reactor_ != nullptr) reactor_->remove(timer_.get());
}

Status NodeTurns::open(Reactor& reactor) {
  if (reactor_ != nullptr) return Status::Ok();
  timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid())
    return base::error(Code::system_error, "timerfd_create: {}", std::strerror(errno));
  FARO_RETURN_IF_ERROR(reactor.add(timer_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(timer_.get(), &count, sizeof count);
    turns_.on_alarm(reactor_->clock().now_ns());
  }));
  reactor_ = &reactor;
  return Status::Ok();
}

void NodeTurns::set(base::Nanoseconds at, base::Nanoseconds now) noexcept {
  constexpr base::Nanoseconds kSecond = 1'000 * base::kMillisecond;
  const base::Nanoseconds wait = std::max<base::Nanoseconds>(at > now ? at - now : 0, 1);
  itimerspec once{};
  once.it_value.tv_sec = static_cast<time_t>(wait / kSecond);
  once.it_value.tv_nsec = static_cast<long>(wait % kSecond);
  timerfd_settime(timer_.get(), 0, &once, nullptr);  // fails for bad arguments only
}

}  // namespace faro::transport::tcp
