// TcpReceiver: decides which thread reads the data connections of a node.
//
// An idle worker reads them itself. So a busy node need not wake its network thread, nor switch threads, for data that
// its workers would find a moment later. While a worker sleeps, or before any worker has polled, the network thread
// reads them.
//
//   sockets ──▶ data epoll ──▶ gate epoll ──▶ the reactor (network thread)
//                   ▲             its interest in the data epoll is on ("armed") while a worker sleeps
//                   └── polled by workers, without waiting
//
// Nothing is lost: the interest is level-triggered, so arming it while there is something to read wakes the network thread
// at once. If no worker of a node sleeps or polls, rows stay in the sockets: no worker could take them anyway. But where rows are
// sent in turns, others wait for what is told of these. There the network thread reads when no worker has for kUnattended.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "transport/schedule/turns.h"
#include "transport/transport.h"

namespace faro::transport::tcp {

class TcpLink;

class TcpReceiver {
 public:
  /// `turns`: of the node, null if it has none; outlives this.
  explicit TcpReceiver(schedule::Turns* turns = nullptr) : turns_(turns) {}
  ~TcpReceiver();
  TcpReceiver(const TcpReceiver&) = delete;
  TcpReceiver& operator=(const TcpReceiver&) = delete;

  /// Threads: network thread. Errors: system_error.
  Status add(Reactor& reactor, TcpLink& link, int fd);
  /// After this no thread reads the link's socket. Threads: any. Blocks: never.
  void remove(int fd) noexcept;

  /// For a worker that finds nothing to do: reads what has arrived on one connection, unless another thread does; returns
  /// whether anything had, and then there may be more on others, whose turn is next. The worker takes those rows while they are
  /// in its cache. From now on workers read, until one sleeps. Threads: any.
  bool poll() noexcept;
  /// A worker is about to sleep, has woken. Threads: any.
  void worker_sleeps() noexcept;
  void worker_wakes() noexcept;

  /// The right to read, of one thread at a time; its holder owns the receiving state of every link. Acquire and release.
  bool try_take() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void take() noexcept;
  void give() noexcept { taken_.store(false, std::memory_order_release); }

  /// Where the holder of that right has what it has received and not yet understood. Of no link between two turns.
  std::span<std::byte> staging() noexcept { return staging_; }

 private:
  Status open(Reactor& reactor);
  bool read(size_t most_links) noexcept;
  void arm_locked(bool armed) noexcept;
  Status open_attendance(Reactor& reactor);
  void attend_locked() noexcept;
  void on_attendance() noexcept;

  static constexpr base::Nanoseconds kUnattended = base::kMillisecond;

  schedule::Turns* const turns_;
  Reactor* reactor_ = nullptr;
  base::UniqueFd data_epoll_;
  base::UniqueFd gate_epoll_;
  std::atomic<bool> open_{
      false};  // release: the two above are there. Workers may run before the first connection
  std::atomic<bool> taken_{false};

  alignas(64) std::array<std::byte, 4096> staging_;

  std::mutex gate_mutex_;              // never on the way of a row: only around sleeps
  std::atomic<uint32_t> sleeping_{0};  // workers; written under the mutex
  std::atomic<bool> armed_{true};      // likewise

  // With turns: whether workers still read.
  base::UniqueFd attendance_;         // a timer
  bool is_attended_ = false;          // it runs; under the mutex
  std::atomic<bool> has_read_{true};  // a worker, since it was started
};

}  // namespace faro::transport::tcp
