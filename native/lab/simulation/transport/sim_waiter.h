// SimWaiter: how a simulated worker waits.
#pragma once

#include <cstdint>

#include "lab/simulation/transport/sim_world.h"
#include "ring/doorbell.h"
#include "ring/waiter.h"

namespace faro::sim {

/// Suspends the fiber that waits. Stateless beside its world; all workers may share one.
class SimWaiter final : public ring::Waiter {
 public:
  explicit SimWaiter(World& world) : world_(world) {}

  void yield() noexcept override { world_.yield(); }
  void sleep(ring::Doorbell& doorbell, uint64_t at_most_ns) noexcept override {
    world_.maybe_yield();  // between the last look and the sleep is where wake-ups get lost
    world_.wait_for_zero(doorbell.line().sleeping, base::deadline_after(world_.now(), at_most_ns),
                         "its doorbell");
    doorbell.disarm();
  }

 private:
  World& world_;
};

}  // namespace faro::sim
