// FutexWaiter: how a real thread waits.
#pragma once

#include <cstdint>

#include "ring/waiter.h"

namespace faro::ring {

/// Yields the processor, and sleeps on the doorbell's futex. Stateless.
/// Threads: any number of workers may share one.
class FutexWaiter final : public Waiter {
 public:
  void yield() noexcept override;
  void sleep(Doorbell& doorbell, uint64_t at_most_ns) noexcept override;

  /// The one instance that production code shares.
  static FutexWaiter& instance() noexcept;
};

}  // namespace faro::ring
