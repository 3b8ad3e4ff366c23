// now_ns: the time by which the laboratory measures.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace faro::bench {

/// Nanoseconds of the system's monotonic clock, which is that of all processes.
inline uint64_t now_ns() noexcept { return base::SystemClock::instance().now_ns(); }

}  // namespace faro::bench
