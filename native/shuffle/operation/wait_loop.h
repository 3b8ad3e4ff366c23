// WaitLoop: how a worker tries, and how it waits.
//
// Every operation is an attempt that answers done or would_wait; `run` and `wait` are what all
// attempts go through. Before `run` answers would_wait it has looked at all rings. What the worker has
// pending is flushed, and all read positions are told, after a short while without progress, after
// the first few yields of a wait, and always before it sleeps (DESIGN.md HC-2). After the drain delay
// frames that nobody receives are spilled (HC-3).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "base/clock.h"
#include "faro/outcome.h"
#include "faro/wait.h"
#include "ring/doorbell.h"
#include "ring/waiter.h"
#include "shuffle/operation/operation.h"
#include "shuffle/operation/ownership.h"
#include "shuffle/operation/worker_context.h"

namespace faro::shuffle {

/// What a worker does for others while it has nothing to do for itself.
class WorkForOthers {
 public:
  virtual ~WorkForOthers() = default;

  /// Takes what has arrived in all rings. Returns whether anything did. Throws: std::bad_alloc.
  virtual bool poll_rings() = 0;
  /// Moves the queues of the outgoing overflow on.
  virtual void send_queued() = 0;
  /// Closes open frames and posts their rings; Transport::flush, by Membership::flush_network, has to follow.
  virtual void post_open_frames() = 0;
  /// Tells all read positions.
  virtual void tell_releases() = 0;

  /// The engine holds batches in place: then it must not wait.
  virtual bool holds_batches() const noexcept = 0;
  /// Frames that nobody receives keep a sender waiting; `spill` copies them to overflow, and returns whether it could.
  virtual bool has_blocked_sender() const noexcept = 0;
  virtual bool spill() = 0;

  /// When to ask where senders are that have not opened their stage, base::kForever if there is nothing to ask.
  /// `stalled_since`: the worker has done nothing since.
  virtual base::Nanoseconds ask_at(base::Nanoseconds stalled_since) const noexcept = 0;
  virtual void ask(base::Nanoseconds now) = 0;
};

/// Threads: the worker, except where said.
class WaitLoop {
 public:
  WaitLoop(const WorkerContext& worker, Operation& operation, Ownership& ownership,
           WorkForOthers& others, ring::DoorbellLine& doorbell,
           std::unique_ptr<ring::Waiter> waiter)
      : worker_(worker),
        operation_(operation),
        ownership_(ownership),
        others_(others),
        doorbell_(&doorbell),
        waiter_(std::move(waiter)) {}

  /// What an attempt is for. A condition of the engine's own that holds does not count as progress of its rows:
  /// a worker that waits for such a condition again and again still drains its rings.
  enum class For : uint8_t { rows, condition };

  /// Tries. If that would wait, takes what has arrived, moves the queues on, spills if that is due, and tries again if
  /// anything arrived or was spilled. Answers `holding` for would_wait while batches are held.
  /// Within a condition of the engine's it only tries: what waits for the condition looks once for all calls within it.
  /// Where memory cannot be had a query fails (Operation::lack_memory), and not the process.
  template <For what = For::rows, typename Attempt>
  Outcome run(Attempt&& attempt) {
    Outcome outcome;
    try {
      outcome = attempt();
      if (outcome == Outcome::would_wait) {
        if (!ownership_.is_in_condition() && look_for_others(true)) outcome = attempt();
      } else if (what == For::condition && outcome == Outcome::done) {
        // The condition holds whatever its calls have run into; what these would have waited for has to be moved on.
        const bool would_wait = operation_.blocked_on().has_collected();
        if (would_wait && !ownership_.is_in_condition()) (void)look_for_others(false);
      }
    } catch (const std::bad_alloc&) {
      outcome = operation_.lack_memory();
    }
    if (outcome == Outcome::would_wait) {
      if constexpr (what == For::rows) operation_.blocked_on().call_would_wait();
      return others_.holds_batches() ? Outcome::holding : Outcome::would_wait;
    }
    if constexpr (what == For::rows) {
      progressed();
    } else if (operation_.blocked_on().is_published()) {
      end_sleep();
    }
    return outcome;
  }

  /// Tries until the attempt answers something else than would_wait, or the time limit passes.
  template <For what = For::rows, typename Attempt>
  Outcome wait(Attempt&& attempt, Wait wait) {
    call_waits_ = true;
    Outcome outcome = run<what>(attempt);
    if (outcome != Outcome::would_wait) return call_waits_ = false, outcome;
    const base::Nanoseconds begin = begin_wait(wait);
    while (outcome == Outcome::would_wait) {
      // Step::sleep: the doorbell is armed, so the next run is the last look before it sleeps.
      const Step step = next_step();
      if (step == Step::expired) {
        outcome = Outcome::deadline;
        break;
      }
      outcome = run<what>(attempt);
      if (outcome == Outcome::would_wait && step == Step::sleep) sleep();
      if (step == Step::sleep) woken();
    }
    end_wait(begin);
    call_waits_ = false;
    return outcome;
  }

  /// For event loops: as `wait`, but it does not sleep. Answers would_wait if nothing can be done
  /// now: then the doorbell is armed, and nothing that came before was missed. Whoever sleeps on it in
  /// place of the worker, at most `sleep_ns`, calls `woken` afterwards. `for_call`: the attempt is one of a call
  /// that waits until it is done, and may do what only such a call may.
  template <typename Attempt>
  Outcome arm_unless(Attempt&& attempt, base::Nanoseconds& sleep_ns, bool for_call) {
    call_waits_ = for_call;
    Outcome outcome = run<For::condition>(attempt);
    if (outcome == Outcome::would_wait) {
      arm_for_event_loop();
      outcome = run<For::condition>(attempt);
      if (outcome == Outcome::would_wait) {
        if (for_call) go_on_blocked(worker_.now());
        sleep_ns = prepare_sleep();
      } else {
        doorbell_.disarm();
        woken();
      }
    }
    if (outcome != Outcome::would_wait) end_blocked();
    call_waits_ = false;
    return outcome;
  }
  /// Ends what arm() began, whether or not the worker slept. Threads: any.
  void woken() noexcept { worker_.membership.worker_wakes(); }

  void send_queued() { others_.send_queued(); }

  void progressed() noexcept {
    stalled_since_ = 0;
    if (operation_.blocked_on().is_published()) [[unlikely]]
      end_sleep();
  }
  /// Inside `wait`: nobody but this call can make room in the worker's own rings.
  bool call_waits() const noexcept { return call_waits_; }
  /// A call of the worker waits. Threads: any.
  bool is_waiting() const noexcept { return waiting_.load(std::memory_order_acquire); }

  ring::DoorbellLine& doorbell_line() noexcept { return doorbell_.line(); }

 private:
  enum class Step { yield, sleep, expired };

  bool look_for_others(bool would_wait);
  void begin_stall(base::Nanoseconds now) noexcept;
  bool spill_if_due(base::Nanoseconds now);
  void start_transfers();
  void flush_all() noexcept;
  base::Nanoseconds begin_wait(Wait wait);
  Step next_step();
  void arm() noexcept;
  void arm_for_event_loop() noexcept;
  base::Nanoseconds prepare_sleep();
  void sleep();
  void end_wait(base::Nanoseconds begin);
  void begin_blocked(base::Nanoseconds now) noexcept;
  void go_on_blocked(base::Nanoseconds now) noexcept;
  void end_blocked() noexcept;
  void end_sleep() noexcept;
  void publish(base::Nanoseconds due) noexcept;

  const WorkerContext& worker_;
  Operation& operation_;
  Ownership& ownership_;
  WorkForOthers& others_;
  ring::Doorbell doorbell_;
  std::unique_ptr<ring::Waiter> waiter_;
  std::atomic<bool> waiting_{false};

  bool call_waits_ = false;
  base::Nanoseconds stalled_since_ = 0;  // 0: not stalled
  base::Nanoseconds spill_at_ = 0;       // when frames that nobody receives are spilled next
  base::Nanoseconds drain_delay_ = 0;    // from one spill to the next
  base::Nanoseconds network_polled_at_ = 0;
  bool network_had_data_ = false;
  std::shared_ptr<BlockedCounts> blocked_;  // of the shuffle that a call waits for, also armed
  base::Nanoseconds blocked_since_ = 0;
  base::Nanoseconds deadline_ = 0;
  uint32_t yields_left_ = 0;
};

}  // namespace faro::shuffle
