#include "shuffle/receive/broken_lane.h"

#include <fmt/format.h>

namespace faro::shuffle {

void fail_lane(const WorkerContext& worker, InRing& lane, std::string why) {
  worker.membership.fail_link(
      lane.sender_node, lane.link,
      Status(Code::protocol_error, fmt::format("worker {}: {}", lane.sender, why)));
  lane.broken = true;
}

}  // namespace faro::shuffle
