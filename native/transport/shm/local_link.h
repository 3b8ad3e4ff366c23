// The link of a node to itself: the rings between its own workers, a worker's rings to itself
// included.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "faro/status.h"
#include "ring/layout.h"
#include "transport/transport.h"

namespace faro::transport::shm {

/// Bytes of memory that make_local_link takes.
uint64_t local_link_bytes(const ring::Layout& rings);

/// Makes the local link: rings as between processes that share memory, in memory of this process
/// alone, allocated now.
///
/// Threads: setup only. Blocks: while the kernel clears the memory. Owns: its memory. What `workers`
/// points to outlives the link. `events`, which may be null, is told about invalid frames: something in
/// this process has overwritten the rings. Errors: resource_limit.
Result<std::unique_ptr<DataLink>> make_local_link(const ring::Layout& rings,
                                                  std::span<WorkerEnd> workers,
                                                  LinkEvents* events = nullptr);

}  // namespace faro::transport::shm
