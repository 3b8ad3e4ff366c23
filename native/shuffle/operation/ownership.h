// Ownership: which thread a worker belongs to, and what other threads want it to look at.
//
// A worker that has nothing open is at rest between its calls. Then the network thread may borrow it, to let go of rings of links
// that are lost (native/DESIGN.md#hc-11); a call that begins meanwhile waits for that.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "faro/outcome.h"
#include "faro/status.h"
#include "faro/wait.h"
#include "ring/doorbell.h"
#include "shuffle/operation/operation.h"
#include "shuffle/operation/worker_context.h"

namespace faro::shuffle {

/// The gate of a worker: every operation enters by it.
class Ownership {
 public:
  /// What the worker does about an alert; answers whether all is done (else it is called again by the next operation).
  using Alerted = std::function<bool()>;

  Ownership(const WorkerContext& worker, Operation& operation, ring::DoorbellLine& doorbell,
            Alerted alerted)
      : worker_(worker), operation_(operation), doorbell_(doorbell), alerted_(std::move(alerted)) {}

  /// Whose it is, and what the worker's current call is about.
  const WorkerContext& worker() const noexcept { return worker_; }
  Operation& operation() const noexcept { return operation_; }

  /// Called first by every operation. Checks that the calling thread owns the worker (or takes it)
  /// and handles alerts (failed queries, stops). Errors: wrong_state, session_closed.
  Status enter();
  /// Takes ownership whoever has it; for a binding whose own threads are not the system's.
  void adopt() noexcept;
  void give_up() noexcept { hand_to(kNobody); }
  /// Whether the calling thread owns the worker.
  bool is_mine() const noexcept;
  /// Whether it does, and the worker is not at rest, so that nobody can borrow it.
  bool is_in_use() const noexcept;
  /// Whether that thread is inside a condition that the worker waits for.
  bool is_in_condition() const noexcept { return in_condition_; }

  /// The owner's call ends, and nothing is open. `alerts`: alerts() before the owner last let go of lost links. False: there
  /// were more since, and the worker is not at rest.
  bool rest(uint64_t alerts) noexcept;
  uint64_t alerts() const noexcept { return alerts_.load(std::memory_order_acquire); }
  /// Does something with what belongs to the worker, if it is at rest. It must not wait. Threads: any but the owner.
  template <typename Do>
  void borrow(Do&& something) {
    uintptr_t owner = 0;
    if (!lend(owner)) return;
    try {
      something();
    } catch (...) {
      owner_.store(owner, std::memory_order_release);
      throw;
    }
    owner_.store(owner, std::memory_order_release);  // the partner is take()
  }
  /// The calling thread has the worker for as long as this lives, whoever owns it; then its owner has it again, unless that
  /// thread has ended. For closing. That nobody is inside a call is the caller's promise.
  class Loan {
   public:
    explicit Loan(Ownership& ownership) noexcept;
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    Ownership& ownership_;
    const uintptr_t owner_;
    const pid_t thread_;
  };

  /// Makes the worker handle alerts at its next operation.
  void look_again() noexcept { alerts_seen_ = alerts_.load(std::memory_order_relaxed) - 1; }
  /// Makes the worker handle alerts at its next operation, and wakes it. Threads: any.
  void alert() noexcept;
  /// Threads: any. Makes a wait of the worker look again.
  void wake() noexcept;
  /// What was written before a wake() is seen by what follows: S2 of native/DESIGN.md#memory-orders.
  void see_wakes() const noexcept { (void)wakes_.load(std::memory_order_seq_cst); }

  /// Calls a condition of the engine's, in which nothing may wait.
  Outcome look_at(const std::function<bool()>& condition);
  /// Before a call waits. Errors: wrong_state in a condition of wait_until: waits do not nest; invalid_argument if the
  /// limit is negative.
  Status check_may_wait(Wait wait) const;

 private:
  // What owner_ is: the address of something of the thread's, or nobody; and the state of the worker in its lowest bits.
  static constexpr uintptr_t kNobody = 0;
  static constexpr uintptr_t kAtRest = 1;
  static constexpr uintptr_t kLent = 2;
  static constexpr uintptr_t kState = kAtRest | kLent;

  bool take(uintptr_t thread) noexcept;
  void hand_to(uintptr_t thread) noexcept;
  bool lend(uintptr_t& owner) noexcept;

  const WorkerContext& worker_;
  Operation& operation_;
  ring::DoorbellLine& doorbell_;
  const Alerted alerted_;

  // Shared with other threads.
  std::atomic<uintptr_t> owner_{kNobody | kAtRest};
  std::atomic<pid_t> thread_{0};  // the owner's, as the system numbers it
  alignas(64) std::atomic<uint64_t> alerts_{0};
  std::atomic<uint64_t> wakes_{0};

  // The worker's own.
  alignas(64) uint64_t alerts_seen_ = 0;
  bool in_condition_ = false;
};

}  // namespace faro::shuffle
