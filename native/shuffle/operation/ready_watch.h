// ReadyWatch: how event loops learn that a worker should look again. One thread sleeps in place of all workers of a
// node.
//
// A worker of which an event loop has found nothing to do arms its doorbell (WaitLoop::arm_unless) and returns to the
// loop. Its Readiness is then armed here: the thread sleeps on the doorbells of all that are. The first ring of one, the
// end of its longest sleep, or the end of the session is its readiness event.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "ring/doorbell.h"
#include "shuffle/operation/node_life.h"
#include "shuffle/operation/wait_loop.h"

namespace faro::shuffle {

class Readiness;

/// The thread starts with the first worker that is armed, and keeps the node until `stop`.
///
/// Threads: any.
class ReadyWatch {
 public:
  explicit ReadyWatch(const NodeLife& node) : node_(node) {}
  /// After `stop`, or where no worker was ever armed.
  ~ReadyWatch();
  ReadyWatch(const ReadyWatch&) = delete;
  ReadyWatch& operator=(const ReadyWatch&) = delete;

  /// Makes all workers ready, and ends the thread. Blocks: never.
  void stop();
  /// After `stop`: whether the thread still is inside a callback, or on its way to its end. The thread itself need not
  /// wait for that.
  bool is_busy() const noexcept;
  /// After `stop`, when it is no longer busy: the thread uses the node no more. Nothing happens on the thread itself.
  void join();

 private:
  friend class Readiness;
  using Callback = std::shared_ptr<const std::function<void()>>;

  void add(Readiness& worker);
  /// The worker's doorbell is armed. Errors: session_closed, system_error.
  Status watch(Readiness& worker, base::Nanoseconds sleep_ns);
  Status start();
  void run();
  bool tell_ready();
  void sleep();

  static base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

  const NodeLife& node_;
  ring::DoorbellLine changed_{};  // rung when `run` should look again
  mutable std::mutex mutex_;
  std::vector<Readiness*> workers_;  // constant once the node is complete
  bool stopped_ = false;             // guarded by mutex_
  std::thread thread_;               // guarded by mutex_ until it is stopped
  std::atomic<bool> running_{false};

  // The thread's own; with room for all workers.
  std::vector<Callback> calls_;
  std::vector<ring::DoorbellLine*> lines_;
};

/// One worker under an event loop.
///
/// Threads: any; reset and watch: the worker's.
class Readiness {
 public:
  Readiness(ReadyWatch& watch, WaitLoop& wait_loop);

  /// As Worker::ready_descriptor and Worker::on_ready.
  Result<int> descriptor();
  Status call(std::function<void()> callback);

  /// Before the doorbell is armed: no event comes of an earlier arm any more, and the descriptor is not readable.
  /// Errors: wrong_state if nobody would learn of an event.
  Status reset();
  /// The doorbell is armed, and whoever sleeps in place of the worker may do so for that long. Errors:
  /// session_closed, system_error: it is not armed.
  Status watch(base::Nanoseconds sleep_ns) { return watch_.watch(*this, sleep_ns); }

 private:
  friend class ReadyWatch;

  void disarm() noexcept;
  void tell() noexcept;

  ReadyWatch& watch_;
  WaitLoop& wait_loop_;

  // Guarded by the watch's mutex.
  base::UniqueFd descriptor_;
  ReadyWatch::Callback callback_;
  bool readable_ = false;  // the descriptor
  bool armed_ = false;
  base::Nanoseconds until_ = 0;  // if it is armed
};

}  // namespace faro::shuffle
