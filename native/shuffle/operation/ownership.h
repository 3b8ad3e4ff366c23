// Ownership: which thread a worker belongs to, and what other threads want it to look at.
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

  /// Called first by every operation. Checks that the calling thread owns the worker (or takes it)
  /// and handles alerts (failed queries, stops). Errors: wrong_state, session_closed.
  Status enter();
  /// Takes ownership whoever has it; for a binding whose own threads are not the system's.
  void adopt() noexcept;
  void give_up() noexcept { owner_.store(nullptr, std::memory_order_release); }
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
    const void* const owner_;
    const pid_t thread_;
  };

  /// Makes the worker handle alerts at its next operation.
  void look_again() noexcept { alerts_seen_ = alerts_.load(std::memory_order_relaxed) - 1; }
  /// The same, and wakes it. Threads: any.
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
  void own() noexcept;

  const WorkerContext& worker_;
  Operation& operation_;
  ring::DoorbellLine& doorbell_;
  const Alerted alerted_;

  // Shared with other threads.
  std::atomic<const void*> owner_{nullptr};
  std::atomic<pid_t> thread_{0};  // the owner's, as the system numbers it
  alignas(64) std::atomic<uint64_t> alerts_{0};
  std::atomic<uint64_t> wakes_{0};

  // The worker's own.
  alignas(64) uint64_t alerts_seen_ = 0;
  bool in_condition_ = false;
};

}  // namespace faro::shuffle
