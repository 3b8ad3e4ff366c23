#include "shuffle/receive/broken_ring.h"

#include <fmt/format.h>

namespace faro::shuffle {

void fail_ring(const WorkerContext& worker, InRing& ring, std::string why) {
  worker.membership.fail_link(
      ring.sender_node, ring.link,
      Status(Code::protocol_error, fmt::format("worker {}: {}", ring.sender, why)));
  ring.broken = true;
}

}  // namespace faro::shuffle
