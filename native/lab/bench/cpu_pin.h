// Keeps this process, and those it forks, on one processor.
#pragma once

#include <sched.h>

#include <cstdint>
#include <utility>

#include "faro/status.h"

namespace faro::bench {

/// Pins to a processor as `taskset -c cpu` does, until destruction. Threads: affects the calling
/// one, and what it starts. Movable.
class CpuPin {
 public:
  /// Errors: invalid_argument if there is no such processor for this process.
  static Result<CpuPin> pin(uint32_t cpu);

  /// The first processor that this process may use.
  static uint32_t first_allowed();

  CpuPin(CpuPin&& other) noexcept
      : before_(other.before_), active_(std::exchange(other.active_, false)) {}
  CpuPin& operator=(CpuPin&&) = delete;
  ~CpuPin();

 private:
  CpuPin() = default;
  cpu_set_t before_{};
  bool active_ = false;
};

}  // namespace faro::bench
