#include "shuffle/query/link_waits.h"

#include <utility>

namespace faro::shuffle {

void LinkWaits::begin(const TrackedQuery& query, Outbound& out) const {
  for (const uint32_t node : query.nodes().awaited()) out.wanted.push_back(node);
}

// A question is asked again.
void LinkWaits::hold(Outbound& out) {
  for (auto at = out.messages.begin(); at != out.messages.end();) {
    const auto message = at++;
    // What is about the link itself goes over it.
    const bool is_of_link = message->second.kind == wire::QueryMessageKind::rest;
    if (is_of_link || !context_.cluster.is_to_come(message->first)) continue;
    if (message->second.kind == wire::QueryMessageKind::await) {
      out.messages.erase(message);
    } else {
      kept_.splice(kept_.end(), out.messages, message);
    }
  }
}

}  // namespace faro::shuffle
