// What happens to a ring whose sender broke the rules.
#pragma once

#include <string>

#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/in_ring.h"

namespace faro::shuffle {

/// Ends the ring's link with a protocol_error that names the worker and says why. Nothing more is taken from the ring.
/// Threads: the worker.
void fail_ring(const WorkerContext& worker, InRing& ring, std::string why);

}  // namespace faro::shuffle
