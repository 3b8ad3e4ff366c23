#include "transport/tcp/tcp_receiver.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "transport/tcp/tcp_link.h"

namespace faro::transport::tcp {
namespace {

// It reads for workers that sleep: what comes on as many links may wake them together.
constexpr size_t kLinksOfNetworkThread = 32;

}  // namespace

TcpReceiver::~TcpReceiver() {
  if (reactor_ != nullptr && attendance_.valid()) reactor_->remove(attendance_.get());
  if (reactor_ != nullptr) reactor_->remove(gate_epoll_.get());
}

Status TcpReceiver::open(Reactor& reactor) {
  data_epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  gate_epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  if (!data_epoll_.valid() || !gate_epoll_.valid() ||
      epoll_ctl(gate_epoll_.get(), EPOLL_CTL_ADD, data_epoll_.get(), &event) != 0) {
    return base::error(Code::system_error, "epoll for data connections: {}", std::strerror(errno));
  }
  FARO_RETURN_IF_ERROR(reactor.add(gate_epoll_.get(), EPOLLIN, [this](uint32_t) {
    // A worker is reading: it takes everything, or the level wakes this thread again.
    if (!read(kLinksOfNetworkThread)) sched_yield();
  }));
  reactor_ = &reactor;
  if (turns_ != nullptr) FARO_RETURN_IF_ERROR(open_attendance(reactor));
  open_.store(true, std::memory_order_release);
  return Status::Ok();
}

Status TcpReceiver::add(Reactor& reactor, TcpLink& link, int fd) {
  if (reactor_ == nullptr) FARO_RETURN_IF_ERROR(open(reactor));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &link;
  if (epoll_ctl(data_epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status::Ok();
  return base::error(Code::system_error, "epoll for a data connection: {}", std::strerror(errno));
}

void TcpReceiver::remove(int fd) noexcept {
  epoll_event unused{};
  if (open_.load(std::memory_order_acquire))
    epoll_ctl(data_epoll_.get(), EPOLL_CTL_DEL, fd, &unused);
}

void TcpReceiver::take() noexcept {
  while (!try_take()) sched_yield();  // its holder never waits
}

bool TcpReceiver::poll() noexcept {
  if (!open_.load(std::memory_order_acquire)) return false;
  if (turns_ != nullptr) [[unlikely]]
    has_read_.store(true, std::memory_order_relaxed);
  if (armed_.load(std::memory_order_relaxed) && sleeping_.load(std::memory_order_relaxed) == 0) {
    std::lock_guard lock(gate_mutex_);
    if (sleeping_.load(std::memory_order_relaxed) == 0) arm_locked(false);
  }
  return read(1);
}

// The kernel's list of what can be read goes round, so every link gets its turn.
bool TcpReceiver::read(size_t most_links) noexcept {
  if (!try_take()) return false;
  std::array<epoll_event, kLinksOfNetworkThread> events;
  const int count = epoll_wait(data_epoll_.get(), events.data(), static_cast<int>(most_links), 0);
  for (int i = 0; i < count; ++i)
    static_cast<TcpLink*>(events[static_cast<size_t>(i)].data.ptr)->on_readable(false);
  give();
  if (turns_ != nullptr) [[unlikely]]
    turns_->send_due();
  return count > 0;
}

// Also before there is a connection: the workers that sleep when the first one comes are counted then. Nothing has been
// disarmed by then.
void TcpReceiver::worker_sleeps() noexcept {
  std::lock_guard lock(gate_mutex_);
  sleeping_.store(sleeping_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!armed_.load(std::memory_order_relaxed)) arm_locked(true);
}

void TcpReceiver::worker_wakes() noexcept {
  std::lock_guard lock(gate_mutex_);
  sleeping_.store(sleeping_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

void TcpReceiver::arm_locked(bool armed) noexcept {
  epoll_event event{};
  event.events = armed ? EPOLLIN : 0u;
  epoll_ctl(gate_epoll_.get(), EPOLL_CTL_MOD, data_epoll_.get(), &event);
  armed_.store(armed, std::memory_order_relaxed);
  if (!armed && attendance_.valid() && !is_attended_) attend_locked();
}

// ------------------------------------------------------------------------------------- with turns

Status TcpReceiver::open_attendance(Reactor& reactor) {
  attendance_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!attendance_.valid())
    return base::error(Code::system_error, "timerfd_create: {}", std::strerror(errno));
  return reactor.add(attendance_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(attendance_.get(), &count, sizeof count);
    on_attendance();
  });
}

void TcpReceiver::attend_locked() noexcept {
  is_attended_ = true;
  itimerspec once{};
  once.it_value.tv_nsec = kUnattended;
  timerfd_settime(attendance_.get(), 0, &once, nullptr);  // fails for bad arguments only
}

void TcpReceiver::on_attendance() noexcept {
  const std::lock_guard lock(gate_mutex_);
  is_attended_ = false;
  if (armed_.load(std::memory_order_relaxed)) return;
  if (has_read_.exchange(false, std::memory_order_relaxed)) return attend_locked();
  arm_locked(true);
}

}  // namespace faro::transport::tcp
