// EpollReactor: waits for descriptors, commands and deadlines of one network thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "links/command_queue.h"
#include "transport/transport.h"

namespace faro::links {

/// Threads: defer and wake any; all else one at a time (the network thread).
/// Blocks: run_once only.
class EpollReactor final : public transport::Reactor {
 public:
  /// Errors: system_error.
  static Result<std::unique_ptr<EpollReactor>> create(const base::Clock& clock);

  Status add(int fd, uint32_t epoll_events, Handler handler) override;
  void change(int fd, uint32_t epoll_events) override;
  void remove(int fd) noexcept override;
  void defer(std::function<void()> task) override;
  const base::Clock& clock() const override { return clock_; }

  /// Waits until something happens, at most until `until`. Handles every descriptor that is ready and
  /// every command. Returns whether there were any.
  bool run_once(base::Nanoseconds until);
  /// Ends a run_once that is waiting, or else keeps the next one from waiting.
  void wake() { defer({}); }

 private:
  // Stays alive while its handler runs, even if the handler removes it.
  struct Entry {
    Handler handler;
    uint32_t generation = 0;
  };

  EpollReactor(const base::Clock& clock, base::UniqueFd epoll, base::UniqueFd event)
      : clock_(clock), epoll_(std::move(epoll)), event_(std::move(event)) {}

  bool run_commands();
  bool run_handlers(int timeout_ms);
  int timeout_ms(base::Nanoseconds until) const;

  const base::Clock& clock_;
  const base::UniqueFd epoll_;
  const base::UniqueFd event_;

  // Network thread.
  std::unordered_map<int, std::shared_ptr<Entry>> entries_;
  uint32_t generations_ = 0;  // tells events of a removed descriptor from those of its successor
  std::vector<MpscCommandQueue::Command> taken_;

  // Shared.
  MpscCommandQueue commands_;
  alignas(64) std::atomic<uint32_t> sleeping_{0};  // see command_queue.h
};

}  // namespace faro::links
