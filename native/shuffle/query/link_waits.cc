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
    if (is_of_link || !context_.cluster.is_out_of_reach(message->first)) continue;
    if (message->second.kind == wire::QueryMessageKind::await) {
      out.messages.erase(message);
    } else {
      kept_.splice(kept_.end(), out.messages, message);
    }
  }
}

bool LinkWaits::end(KnownQueries& known, uint32_t node, Outbound& out) {
  bool alert = false;
  for (const KnownQueries::Pointer& query : known.waiting_for(node)) {
    query->nodes().found(node);
    if (query->id.issuer != node || context_.cluster.is_of_this_life(query->id)) continue;
    known.lose(*query, node, known.why_not(query->id), out);
    alert = true;
  }
  for (auto at = kept_.begin(); at != kept_.end();) {
    const auto kept = at++;
    if (kept->first == node) out.messages.splice(out.messages.end(), kept_, kept);
  }
  return alert;
}

}  // namespace faro::shuffle
