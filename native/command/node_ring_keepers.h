// Who keeps a ring that ends at a node (lane.ends): the workers of that node that hold frames of it, and those that have not taken
// what lies there for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "counters/counter_view.h"
#include "faro/query.h"

namespace faro::command {

/// A worker, and what of the ring it keeps.
struct RingKeeper {
  uint32_t worker = 0;
  bool holds = false;  ///< frames that it has taken; else it has not taken them
  std::string what;    ///< "holds 2.0 KiB from worker 0, stage 5 of query 0:1"
};

/// Who keeps the ring by which `sender` sends a stage to a node: holders as they are now, others as they were at the node's last tick.
std::vector<RingKeeper> ring_keepers(const counters::NodeView& receiver, uint64_t sender,
                                     uint64_t stage);

/// "4 frames, 2.0 KiB, from worker 0, stage 5 of query 0:1".
std::string untaken_text(const counters::UntakenStream& stream);
/// The workers that may take them, by number.
std::vector<uint32_t> readers_of(const counters::NodeView& node,
                                 const counters::UntakenStream& stream);

}  // namespace faro::command
