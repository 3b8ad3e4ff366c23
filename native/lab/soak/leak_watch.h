// LeakWatch: what the processes of a soak have when no session is open, which must not grow.
#pragma once

#include <cstdint>
#include <string>

#include "faro/status.h"
#include "lab/soak/memory_trend.h"
#include "lab/soak/node_group.h"
#include "lab/soak/usage.h"

namespace faro::soak {

/// Threads: the controller's.
class LeakWatch {
 public:
  /// A process has more descriptors or threads than at its first look, or a file is left in `folder`: a violation.
  Status look(NodeGroup& nodes, uint32_t witness, uint64_t witness_heap_bytes,
              const std::string& folder);

  uint64_t looks() const { return looks_; }
  /// At the last look.
  const Usage& controller() const { return controller_; }
  const Usage& witness() const { return witness_; }

  bool memory_is_known() const { return witness_heap_.is_known(); }
  bool memory_grew() const {
    return witness_memory_.grew() || witness_heap_.grew() || controller_memory_.grew();
  }
  /// How it went, in the second and in the last quarter; or that this is not known.
  std::string memory_text() const;

 private:
  static constexpr uint64_t kResidentGrowth = 1 << 20;
  static constexpr uint64_t kHeapGrowth = 64 << 10;

  uint64_t looks_ = 0;
  Usage controller_, witness_;
  size_t controller_descriptors_ = 0;
  MemoryTrend witness_memory_{kResidentGrowth}, controller_memory_{kResidentGrowth};
  MemoryTrend witness_heap_{kHeapGrowth};
};

}  // namespace faro::soak
