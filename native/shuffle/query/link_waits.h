// LinkWaits: what queries do while nodes that they need are not linked yet, where nodes are linked on demand.
//
// A query has the links made that it needs when it is declared. Until a node is linked, the rings to it are as full ones
// (link_lanes.cc), and what is to be said to it is kept here. A node that is not linked in time is lost to the query.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "shuffle/query/known_queries.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_context.h"
#include "shuffle/query/tracked_query.h"

namespace faro::shuffle {

/// Threads: under the table's lock.
class LinkWaits {
 public:
  /// `context` outlives it. `limit`: for how long a query waits.
  LinkWaits(const QueryContext& context, base::Nanoseconds limit)
      : context_(context), limit_(limit) {}

  /// A query is declared: which links are to be made.
  void begin(const TrackedQuery& query, Outbound& out) const;
  /// Keeps what cannot be sent yet.
  void hold(Outbound& out);
  /// The node is in reach: gives out what was kept for it. The queries do not wait for it any more; those that another
  /// process of the node has begun are lost. Returns whether workers are to be alerted.
  bool end(KnownQueries& known, uint32_t node, Outbound& out);
  /// Answers the queries of `all` that have waited for too long. Forgets what was kept for nodes that none waits for,
  /// unless the link with them may stay.
  template <typename Queries>
  std::vector<std::shared_ptr<TrackedQuery>> late(const Queries& all);

 private:
  using Kept = std::list<std::pair<uint32_t, wire::QueryMessage>>;

  const QueryContext& context_;
  const base::Nanoseconds limit_;
  Kept kept_;  // to whom, in order
};

template <typename Queries>
std::vector<std::shared_ptr<TrackedQuery>> LinkWaits::late(const Queries& all) {
  std::vector<std::shared_ptr<TrackedQuery>> late;
  std::set<uint32_t> awaited;
  for (const auto& [id, query] : all) {
    QueryNodes& nodes = query->nodes();
    if (nodes.has_waited(context_.now, limit_)) late.push_back(query);
    awaited.insert(nodes.awaited().begin(), nodes.awaited().end());
  }
  std::erase_if(kept_, [&](const auto& kept) {
    return !awaited.contains(kept.first) && !context_.cluster.is_held(kept.first);
  });
  return late;
}

}  // namespace faro::shuffle
