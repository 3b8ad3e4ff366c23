// CompletionPoller: decides which thread polls the completion queues of a node.
//
// An idle worker polls them itself. So a busy node need not wake its network thread, nor switch threads,
// for completions that its workers would find a moment later. While a worker sleeps, or before any worker
// has polled, the network thread is responsible.
//
//   completion queues ──▶ completion channel ──▶ the reactor (network thread)
//          ▲         an event for the next completion of each queue that was armed
//          └── polled by workers, without waiting
//
// An armed queue makes one event, for the first completion after that. Nothing is lost:
//   - a thread that arms a queue polls it once more before it gives back the right to poll. That finds
//     what came before arming; what comes after makes an event;
//   - the network thread handles events: it polls, and arms again while it is responsible. So from worker_sleeps until
//     the first poll after all workers have woken, every queue is armed, or its event is on its way;
//   - a worker that leaves something unsent that waits for a completion has that queue watched.
// If no worker of a node sleeps or polls, completions stay in the queues: no worker could take what they
// bring anyway.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "faro/status.h"
#include "transport/transport.h"

namespace faro::transport::verbs {

class VerbsPath;

/// Where armed completion queues report.
class CompletionEvents {
 public:
  virtual ~CompletionEvents() = default;
  /// Readable while there is an event.
  virtual int descriptor() const noexcept = 0;
  /// Takes an event: the path of the queue that reports (its cq_context); null when there is none.
  /// Threads: network thread.
  virtual VerbsPath* next() noexcept = 0;
};

/// What is kept for each path. Threads: the holder of the right to poll.
struct PollState {
  bool armed = false;  // since the last event
};

class CompletionPoller : public std::enable_shared_from_this<CompletionPoller> {
 public:
  /// `busy`: the network thread polls all the time, at the cost of a processor.
  CompletionPoller(std::shared_ptr<CompletionEvents> events, bool busy)
      : events_(std::move(events)), busy_(busy) {}
  ~CompletionPoller();
  CompletionPoller(const CompletionPoller&) = delete;
  CompletionPoller& operator=(const CompletionPoller&) = delete;

  /// From now on the path's completions are taken. Threads: network thread. Errors: system_error.
  Status add(Reactor& reactor, VerbsPath& path);
  /// After this no thread polls the path, except by `watch`. Threads: network thread.
  void remove(VerbsPath& path) noexcept;

  /// The device is gone, and all links with it. Threads: network thread.
  void fail_all(const Status& cause) noexcept;

  /// For a worker with nothing to do: handles all completions, unless another thread is doing so. Returns whether there
  /// were any. From now on workers poll, until one sleeps. Threads: any.
  bool poll() noexcept;
  /// A worker is about to sleep, or has woken. Threads: any.
  void worker_sleeps() noexcept;
  void worker_wakes() noexcept;

  /// The path waits for a completion: the network thread polls if no worker does. Handles the completions that have
  /// arrived. Do not call it while holding a right to post or to poll. Threads: any.
  void watch(VerbsPath& path) noexcept;

 private:
  // The right to poll, which one thread at a time holds. The holder never waits. Acquire and release.
  bool try_take() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void take() noexcept;
  void give() noexcept { taken_.store(false, std::memory_order_release); }

  bool work(VerbsPath& path) noexcept;
  void arm_and_work(VerbsPath& path) noexcept;
  void on_events() noexcept;
  void spin();

  const std::shared_ptr<CompletionEvents> events_;
  const bool busy_;
  Reactor* reactor_ = nullptr;  // network thread

  alignas(64) std::atomic<bool> taken_{false};
  std::atomic<uint32_t> sleeping_{0};  // workers

  // The holder of the right to poll.
  std::vector<VerbsPath*> paths_;
  bool watching_ = true;  // the network thread is responsible
};

}  // namespace faro::transport::verbs
