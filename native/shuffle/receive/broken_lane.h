// What becomes of a ring whose sender broke the rules.
#pragma once

#include <string>

#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/in_ring.h"

namespace faro::shuffle {

/// Ends the link that the ring is of with a protocol_error that names the worker and says why; nothing more is taken
/// from it. Threads: the worker.
void fail_lane(const WorkerContext& worker, InRing& lane, std::string why);

}  // namespace faro::shuffle
