// What memory a cluster takes by being open, as the kernel counts it.
#pragma once

#include <cstdint>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::bench {

struct OpenMemory {
  uint64_t bytes = 0;       ///< all of it
  uint64_t ring_bytes = 0;  ///< of that rings: by how much more it is with rings twice as large
};

/// Opens a cluster of that many processes on this host, and closes it; then one with rings twice as large. Answers by how much their
/// memory, anonymous and shared, has grown between the two; what processes share counts once. Threads, Errors: as run_cluster;
/// system_error where the kernel does not say.
Result<OpenMemory> open_cluster_memory(uint32_t process_count, uint32_t workers_per_process,
                                       const Config& config);

}  // namespace faro::bench
