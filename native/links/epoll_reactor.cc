#include "links/epoll_reactor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/each.h"
#include "base/error.h"

namespace faro::links {
namespace {

Status system_error(const char* call) {
  return base::error(Code::system_error, "{}: {}", call, std::strerror(errno));
}

uint64_t key_of(int fd, uint32_t generation) {
  return (uint64_t{generation} << 32) | static_cast<uint32_t>(fd);
}

// Events taken from the kernel at a time; more are taken in the same round.
constexpr int kEventBatch = 128;
// A round ends after this many batches, even if more descriptors are ready, so that commands and time limits get their
// turn. Level triggering brings the rest in the next round.
constexpr int kBatchesPerRound = 16;

}  // namespace

Result<std::unique_ptr<EpollReactor>> EpollReactor::create(const base::Clock& clock) {
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return system_error("epoll_create1");
  base::UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) return system_error("eventfd");
  const int event_fd = event.get();
  std::unique_ptr<EpollReactor> reactor(
      new EpollReactor(clock, std::move(epoll), std::move(event)));
  const Status added = reactor->add(event_fd, EPOLLIN, [event_fd](uint32_t) {
    uint64_t count = 0;
    // This only resets the event. Every round looks at the commands themselves.
    [[maybe_unused]] const ssize_t got = read(event_fd, &count, sizeof count);
  });
  if (!added.ok()) return added;
  return reactor;
}

Status EpollReactor::add(int fd, uint32_t epoll_events, Handler handler) {
  auto entry = std::make_shared<Entry>();
  entry->handler = std::move(handler);
  entry->generation = ++generations_;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = key_of(fd, entry->generation);
  entries_[fd] = std::move(entry);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status::Ok();
  const Status failed = system_error("epoll_ctl");
  entries_.erase(fd);
  return failed;
}

void EpollReactor::change(int fd, uint32_t epoll_events) {
  const auto found = entries_.find(fd);
  if (found == entries_.end()) return;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = key_of(fd, found->second->generation);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EpollReactor::remove(int fd) noexcept {
  if (entries_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EpollReactor::defer(std::function<void()> task) {
  commands_.push(std::move(task));
  // P2 and P3 of native/DESIGN.md#memory-orders. The plain load first keeps the line shared while the thread is awake.
  if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
  if (sleeping_.exchange(0, std::memory_order_seq_cst) == 0) return;
  const uint64_t one = 1;
  // This can only fail if the counter is full, and then the thread wakes anyway.
  [[maybe_unused]] const ssize_t put = write(event_.get(), &one, sizeof one);
}

bool EpollReactor::run_commands() {
  if (commands_.empty()) return false;
  // A command may defer another: that one belongs to the next round.
  commands_.take(taken_);
  const bool worked = !taken_.empty();
  base::Each each;
  for (auto& command : taken_) {
    if (command) each.run(command);
  }
  taken_.clear();
  each.rethrow();
  return worked;
}

int EpollReactor::timeout_ms(base::Nanoseconds until) const {
  if (until == base::kForever) return -1;
  const base::Nanoseconds now = clock_.now_ns();
  if (until <= now) return 0;
  // Rounded up: waking before the deadline would only mean waiting again.
  const uint64_t milliseconds = (until - now + 999'999) / 1'000'000;
  return milliseconds > INT_MAX ? INT_MAX : static_cast<int>(milliseconds);
}

bool EpollReactor::run_handlers(int timeout) {
  std::array<epoll_event, kEventBatch> events;
  bool worked = false;
  base::Each each;  // an edge that is missed is not reported again
  for (int batch = 0; batch < kBatchesPerRound; ++batch) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), kEventBatch, batch == 0 ? timeout : 0);
    if (batch == 0) sleeping_.store(0, std::memory_order_relaxed);  // no one needs to wake us now
    for (int i = 0; i < count; ++i) {
      const uint64_t key = events[static_cast<size_t>(i)].data.u64;
      const auto found = entries_.find(static_cast<int>(static_cast<uint32_t>(key)));
      if (found == entries_.end() || found->second->generation != key >> 32) continue;
      const std::shared_ptr<Entry> entry = found->second;
      each.run([&] { entry->handler(events[static_cast<size_t>(i)].events); });
      worked = true;
    }
    if (count < kEventBatch) break;
  }
  each.rethrow();
  return worked;
}

bool EpollReactor::run_once(base::Nanoseconds until) {
  base::Each each;
  bool worked = true;  // if it throws
  each.run([&] { worked = run_commands(); });
  int timeout = worked ? 0 : timeout_ms(until);
  if (timeout != 0) {
    sleeping_.exchange(1, std::memory_order_seq_cst);  // N1
    if (!commands_.empty()) timeout = 0;               // N2
  }
  each.run([&] { worked |= run_handlers(timeout); });
  each.run([&] { worked |= run_commands(); });
  each.rethrow();
  return worked;
}

}  // namespace faro::links
