// DeferredSends: the paths of a node that have something to send which may wait a moment.
//
// Most of what a transfer of 16 KiB costs the kernel is per packet, not per byte. So transfers that have
// reached the threshold, and read positions, wait for more to go with them: until a worker is about to
// wait (flush), kGatherBytes are pending for a peer, a worker finds no space, or the oldest has waited for
// kLimit. If every worker is busy with something else by then, a timer makes the network thread send
// them.
//
// Nothing is left behind: native/DESIGN.md#memory-orders defines the steps of a deferrer (D1 to D3), a flusher (F1 to
// F5) and the timer (T1, T2), and says why. All are seq_cst.
#pragma once

#include <atomic>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "transport/transport.h"

namespace faro::transport {

class DeferredSends {
 public:
  class Path {
   public:
    virtual ~Path() = default;
    /// Sends what was deferred. Threads: any. Blocks: never.
    virtual void send_deferred() = 0;
  };

  /// The longest that data waits while workers read, send or wait at all. Short compared with what a user
  /// notices, long compared with the time in which a busy worker fills its rings, and less than half the timer,
  /// by which that tells what was forgotten.
  static constexpr base::Nanoseconds kLimit = 300'000;
  /// The longest that data waits at all, and so how long a peer waits for a worker that computes. Each
  /// expiry wakes the network thread. While the timer finds that the workers flush by themselves it doubles
  /// its time, up to kLongestTimer.
  static constexpr base::Nanoseconds kTimer = 1'000'000;
  static constexpr base::Nanoseconds kLongestTimer = 16 * kTimer;

  DeferredSends() = default;
  ~DeferredSends();
  DeferredSends(const DeferredSends&) = delete;
  DeferredSends& operator=(const DeferredSends&) = delete;

  /// Threads: network thread. Errors: system_error.
  Status add(Reactor& reactor, Path& path);
  /// After this no thread touches the path. Blocks: while another thread flushes, which never waits.
  void remove(Path& path) noexcept;

  /// D2; flushes if something has waited for too long. Threads: any.
  void note(base::Nanoseconds now) noexcept;
  /// Sends everything deferred, or another thread is about to. Threads: any. Blocks: never.
  void flush() noexcept;

  /// How long the timer takes that starts next. Threads: any.
  base::Nanoseconds timer_after() const noexcept {
    return timer_after_.load(std::memory_order_relaxed);
  }

 private:
  Status open(Reactor& reactor);
  void start_timer() noexcept;
  void on_timer() noexcept;
  void take() noexcept;
  void give() noexcept { flushing_.store(false, std::memory_order_seq_cst); }

  Reactor* reactor_ = nullptr;
  base::UniqueFd timer_;
  std::atomic<base::Nanoseconds> since_{0};  // when the oldest was deferred; 0: nothing is
  std::atomic<bool> armed_{false};           // the timer runs
  std::atomic<base::Nanoseconds> timer_after_{kTimer};  // written by the network thread
  std::atomic<bool> flushing_{false};                   // the right to use paths_
  std::vector<Path*> paths_;
};

}  // namespace faro::transport
