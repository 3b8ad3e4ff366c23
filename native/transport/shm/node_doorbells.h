// The doorbells of a node's workers: one line each, in memory that shm peers can map.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "ring/doorbell.h"
#include "transport/shm/shared_memory.h"
#include "transport/transport.h"

namespace faro::transport::shm {

/// Owns: the lines, and the memfd that they lie in. Movable. Threads: see ring/doorbell.h.
class NodeDoorbells {
 public:
  NodeDoorbells() noexcept = default;

  /// In a sealed memfd; where the kernel has none, in private memory (then memory().fd is -1 and
  /// shm is not available anyway). Errors: resource_limit.
  static Result<NodeDoorbells> make(uint32_t worker_count);

  ring::DoorbellLine& line(uint32_t worker) const noexcept {
    return reinterpret_cast<ring::DoorbellLine*>(mapping_.data())[worker];
  }
  DoorbellMemory memory() const noexcept { return {fd_.get(), worker_count_}; }

 private:
  base::UniqueFd fd_;
  Mapping mapping_;
  uint32_t worker_count_ = 0;
};

}  // namespace faro::transport::shm
