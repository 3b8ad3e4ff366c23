// Waiter: how a worker's thread waits.
#pragma once

#include <cstdint>

namespace faro::ring {

class Doorbell;  // ring/doorbell.h

/// How a worker's thread waits: on a futex, or in the simulation. Every operation of a worker is a
/// non-blocking state machine; a wait is the loop
///
///   look → nothing: yield a few times → arm the doorbell → look once more → nothing: sleep → look
///   …
///
/// and this is its only part that differs between a real thread and a simulated one.
///
/// Threads: the worker's. Errors: none; returning early is always allowed, the caller looks again.
class Waiter {
 public:
  virtual ~Waiter() = default;

  /// Gives other threads a turn, without sleeping.
  virtual void yield() noexcept = 0;

  /// Sleeps until the doorbell rings or `at_most_ns` nanoseconds have passed (UINT64_MAX: no
  /// limit), and leaves the doorbell disarmed. Call only after the doorbell was armed and
  /// everything was looked at again since: a ring that came in between makes it return at once.
  virtual void sleep(Doorbell& doorbell, uint64_t at_most_ns) noexcept = 0;
};

}  // namespace faro::ring
