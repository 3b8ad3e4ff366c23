// What happens to a ring whose sender broke the rules.
#pragma once

#include "base/error.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/in_ring.h"

namespace faro::shuffle {

/// Ends the ring's link with a protocol_error that names the worker and says why, as fmt::format has it. Nothing more is
/// taken from the ring. Threads: the worker.
template <typename... Args>
void fail_ring(const WorkerContext& worker, InRing& ring, fmt::format_string<Args...> why,
               Args&&... args) {
  worker.membership.fail_link(ring.sender_node, ring.link,
                              base::error(Code::protocol_error, "worker {}: {}", ring.sender,
                                          fmt::format(why, std::forward<Args>(args)...)));
  ring.broken = true;
}

}  // namespace faro::shuffle
