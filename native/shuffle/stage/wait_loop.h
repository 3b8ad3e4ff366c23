// WaitLoop: how a worker tries, and how it waits.
//
// Every operation is an attempt that answers done or would_wait; `run` and `wait` are what all
// attempts go through. Before `run` answers would_wait it has looked at all rings. What the worker has
// pending is flushed, and all read positions are told, after a short while without progress, after
// the first few yields of a wait, and always before it sleeps (DESIGN.md HC-2). Frames that nobody receives
// are spilled at once or after a delay (HC-3).
#pragma once

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
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/receive_side.h"
#include "shuffle/send/lanes.h"

namespace faro::shuffle {

/// Threads: the worker, except where said.
class WaitLoop {
 public:
  WaitLoop(Ownership& ownership, ReceiveSide& receive_side, Lanes& lanes,
           ring::DoorbellLine& doorbell, std::unique_ptr<ring::Waiter> waiter)
      : worker_(ownership.worker()),
        operation_(ownership.operation()),
        ownership_(ownership),
        receive_side_(receive_side),
        lanes_(lanes),
        doorbell_(&doorbell),
        waiter_(std::move(waiter)) {}

  /// A call of a shuffle: runs an attempt once, or until it can be done.
  template <typename Attempt>
  Outcome operate(ShuffleSide& side, const Attempt& attempt, Wait limit) {
    if (limit.is_none()) return polled(run(attempt));
    if (Status status = ownership_.check_may_wait(limit); !status.ok())
      return side.fail(std::move(status));
    return polled(wait(attempt, limit));
  }

  /// What an attempt is for. A condition of the engine's own that holds does not count as progress of its rows:
  /// a worker that waits for such a condition again and again still drains its rings.
  enum class For : uint8_t { rows, condition };

  /// Tries. If that would wait, takes what has arrived, moves the queues on, spills if that is due, and tries again if
  /// anything arrived or was spilled. Answers `holding` for would_wait while batches are held.
  /// Within a condition of the engine's it only tries: what waits for the condition looks once for all calls within it.
  /// Where memory cannot be had a query fails (Operation::lack_memory), and not the process (native/DESIGN.md#hc-16).
  template <For what = For::rows, typename Attempt>
  Outcome run(Attempt&& attempt) {
    Outcome outcome;
    receive_side_.begin_attempt();
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
      return lanes_.holds_batches() ? Outcome::holding : Outcome::would_wait;
    }
    if constexpr (what == For::rows) {
      operation_.progressed();
    } else {
      operation_.end_published();
    }
    return outcome;
  }

  /// Tries until the attempt answers something else than would_wait, or the time limit passes. Each try begins with
  /// Ownership::enter: it sees that the session or the query that it is about has ended (native/DESIGN.md#inv-4).
  template <For what = For::rows, typename Attempt>
  Outcome wait(Attempt&& attempt, Wait wait) {
    operation_.set_call_waits(true);
    Outcome outcome = run<what>(attempt);
    if (outcome != Outcome::would_wait) return operation_.set_call_waits(false), outcome;
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
    operation_.set_call_waits(false);
    return outcome;
  }

  /// For event loops: as `wait`, but it does not sleep. Answers would_wait if nothing can be done
  /// now: then the doorbell is armed, and nothing that came before was missed. Whoever sleeps on it in
  /// place of the worker, at most `sleep_ns`, calls `woken` afterwards. `for_call`: the attempt is one of a call
  /// that waits until it is done, and may do what only such a call may.
  template <typename Attempt>
  Outcome arm_unless(Attempt&& attempt, base::Nanoseconds& sleep_ns, bool for_call) {
    operation_.set_call_waits(for_call);
    Outcome outcome = run<For::condition>(attempt);
    if (outcome == Outcome::would_wait) {
      arm_for_event_loop();
      outcome = run<For::condition>(attempt);
      if (outcome == Outcome::would_wait) {
        if (for_call) operation_.go_on_blocked(worker_.now());
        sleep_ns = prepare_sleep();
      } else {
        doorbell_.disarm();
        woken();
      }
    }
    if (outcome != Outcome::would_wait) operation_.end_blocked();
    operation_.set_call_waits(false);
    return outcome;
  }
  /// Moves on what waits for room in outgoing rings.
  void send_queued();
  /// Ends what arm() began, whether or not the worker slept. It may have been rung, and none but it, for what has come for
  /// others. Threads: any.
  void woken() noexcept;
  /// Ends what arm() began in place of the worker, which comes back late, if at all. Threads: any.
  void woken_in_place() noexcept {
    worker_.network.worker_wakes();
    if (NodeShare* const share = receive_side_.at_node()) share->look_in_place();
  }

  ring::DoorbellLine& doorbell_line() noexcept { return doorbell_.line(); }

 private:
  enum class Step { yield, sleep, expired };

  bool look_for_others(bool would_wait);
  void begin_stall(base::Nanoseconds now) noexcept;
  bool spill_if_due(base::Nanoseconds now, base::Nanoseconds stalled_since);
  base::Nanoseconds late_at(base::Nanoseconds stalled_since) const noexcept;
  void start_transfers();
  void flush_all() noexcept;
  base::Nanoseconds begin_wait(Wait wait);
  Step next_step();
  void arm() noexcept;
  void arm_for_event_loop() noexcept;
  base::Nanoseconds prepare_sleep();
  void sleep();
  void end_wait(base::Nanoseconds begin);
  /// Counts a call that could not be done, unless it is part of a wait: that counts itself.
  Outcome polled(Outcome outcome) noexcept {
    const bool is_blocked =
        outcome == Outcome::holding || (outcome == Outcome::would_wait && !operation_.call_waits());
    if (is_blocked) operation_.blocked_on().count();
    return outcome;
  }
  void publish(base::Nanoseconds due) noexcept;

  const WorkerContext& worker_;
  Operation& operation_;
  Ownership& ownership_;
  ReceiveSide& receive_side_;
  Lanes& lanes_;
  ring::Doorbell doorbell_;
  std::unique_ptr<ring::Waiter> waiter_;

  base::Nanoseconds spill_at_ = 0;     // when frames that nobody receives are spilled next
  base::Nanoseconds drain_delay_ = 0;  // from one spill to the next
  base::Nanoseconds network_polled_at_ = 0;
  bool network_had_data_ = false;
  base::Nanoseconds deadline_ = 0;
  uint32_t yields_ = 0;  // that this wait begins with
  uint32_t yields_left_ = 0;
  base::Nanoseconds waits_since_ = 0;  // without progress
  base::Nanoseconds last_wait_ = 0;    // how long it took, from its last progress on
};

}  // namespace faro::shuffle
