// Usage: what a process has of memory, descriptors and threads.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace faro::soak {

struct Usage {
  uint64_t resident_bytes = 0;
  uint32_t descriptors = 0;
  uint32_t threads = 0;

  /// All 0 for a process that has ended, or of another user. Threads: any.
  static Usage of(pid_t process);
};

}  // namespace faro::soak
