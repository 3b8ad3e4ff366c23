#include "ring/futex_waiter.h"

#include <sched.h>

#include "ring/doorbell.h"

namespace faro::ring {

void FutexWaiter::yield() noexcept { sched_yield(); }

void FutexWaiter::sleep(Doorbell& doorbell, uint64_t at_most_ns) noexcept {
  doorbell.sleep(at_most_ns);
}

FutexWaiter& FutexWaiter::instance() noexcept {
  static FutexWaiter waiter;
  return waiter;
}

}  // namespace faro::ring
