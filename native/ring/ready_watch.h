// ReadyWatch: how event loops learn that a worker, or a poller, should look again. One thread sleeps in place of all
// workers of a node, or all pollers of an endpoint (native/DESIGN.md#hc-12).
//
// A worker of which an event loop has found nothing to do arms its doorbell and returns to the loop. Its Readiness is then
// armed here: the thread sleeps on the doorbells of all that are. The first ring of one, the end of its longest sleep, or
// the end of the session is its readiness event.
//
// A worker that arms need not wake the thread: it goes on sleeping on the doorbell of a worker that
// was told to be ready, and whose longest sleep has not ended (`watched_`). A ring wakes whoever
// sleeps on a line, whatever the line read when he began. A ring that came before `armed_` was set
// did that in vain: so whoever sets it looks at the line afterwards. And a thread that has read the
// line, but does not sleep yet, is made to read it again (look_again_before_sleep).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "ring/doorbell.h"

namespace faro::ring {

class Readiness;

/// The thread starts with the first worker that is armed, or the first descriptor of a poller, and keeps the node until `stop`.
///
/// Threads: any.
class ReadyWatch {
 public:
  /// The node that it belongs to.
  struct Node {
    std::function<std::shared_ptr<const void>()> keep_alive;
    std::function<Status()> closed_status;  // why no worker can be armed after `stop`
  };

  explicit ReadyWatch(Node node) : node_(std::move(node)) {}
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
  /// The worker's doorbell is armed. Errors: as closed_status, system_error.
  Status watch(Readiness& worker, base::Nanoseconds sleep_ns);
  Status start();
  void look_again_before_sleep() noexcept;
  void run();
  bool tell_ready();
  void sleep();

  static base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

  const Node node_;
  DoorbellLine changed_{};  // rung when `run` should look again
  mutable std::mutex mutex_;
  std::vector<Readiness*> workers_;                  // constant once the node is complete
  bool stopped_ = false;                             // guarded by mutex_
  std::thread thread_;                               // guarded by mutex_ until it is stopped
  base::Nanoseconds sleeps_until_ = base::kForever;  // the thread; guarded by mutex_
  std::atomic<bool> running_{false};

  // The thread's own; with room for all workers.
  std::vector<Callback> calls_;
  std::vector<SeenLine> lines_;
};

/// One worker, or poller, under an event loop.
///
/// Threads: any; reset and watch: the worker's.
class Readiness {
 public:
  /// `woken`: called by any thread when nobody sleeps in place of the worker any more.
  Readiness(ReadyWatch& watch, DoorbellLine& doorbell, std::function<void()> woken);

  /// They do what Worker::ready_descriptor and Worker::on_ready say.
  Result<int> descriptor();
  Status call(std::function<void()> callback);

  /// The thread runs, so that `watch` cannot fail for want of it. Errors: as `watch`.
  Status start();
  /// Before the doorbell is armed: no event comes of an earlier arm any more, and the descriptor is not readable.
  /// Errors: wrong_state if nobody would learn of an event.
  Status reset();
  /// The doorbell is armed, and whoever sleeps in place of the worker may do so for that long. Errors:
  /// as ReadyWatch::Node::closed_status, system_error: it is not armed.
  Status watch(base::Nanoseconds sleep_ns) { return watch_.watch(*this, sleep_ns); }

 private:
  friend class ReadyWatch;

  bool is_rung() const noexcept { return doorbell_.sleeping.load(std::memory_order_seq_cst) == 0; }
  void disarm() noexcept;
  void tell() noexcept;

  ReadyWatch& watch_;
  DoorbellLine& doorbell_;
  const std::function<void()> woken_;

  // Guarded by the watch's mutex.
  base::UniqueFd descriptor_;
  ReadyWatch::Callback callback_;
  bool readable_ = false;  // the descriptor
  bool armed_ = false;
  bool watched_ = false;         // the thread sleeps on its doorbell, also if it is not armed
  base::Nanoseconds until_ = 0;  // its longest sleep, if it is watched
};

}  // namespace faro::ring
