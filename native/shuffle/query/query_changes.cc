#include "shuffle/query/query_changes.h"

#include <new>
#include <utility>

namespace faro::shuffle {

QueryChanges::QueryChanges(ClusterShape shape, QueryEnvironment& environment,
                           const QueryTimeouts& timeouts)
    : environment_(environment),
      context_(std::move(shape), timeouts.unopened_ns),
      link_waits_(context_, timeouts.link_ns) {}

void QueryChanges::tell_failed(const Outbound& out) {
  for (const auto& [query, cause] : out.failed) {
    try {
      environment_.query_failed(query, cause);
    } catch (const std::bad_alloc&) {
      // Whoever uses it is told all the same.
    }
  }
}

// Workers see an outcome at once. Whoever closes the session then gets the lock only when the peers' OUTCOMEs are queued, so
// that his BYE stands behind them.
void QueryChanges::queue_locked(Outbound& out) {
  const auto each = [](auto& list, const auto& queue) {
    for (; !list.empty(); list.pop_front()) queue(list.front());
  };
  try {
    each(out.messages, [&](const auto& m) { environment_.send(m.first, m.second); });
    each(out.offenders, [&](const auto& offender) {
      const auto& [node, cause] = offender;
      // What this node's own workers do wrong they are told themselves.
      if (node != context_.cluster.own()) environment_.fail_peer(node, cause);
    });
    each(out.let_go, [&](uint32_t node) { environment_.let_go(node); });
    each(out.wanted, [&](uint32_t node) { environment_.want_link(node); });
  } catch (const std::bad_alloc&) {
    unsent_.take(std::move(out));  // at the next tick
  }
}

}  // namespace faro::shuffle
