// LinkWaits: what queries do while nodes that they need are not linked yet, where nodes are linked on demand.
//
// A query has the links made that it needs when it is declared. Until a node is linked, the rings to it are as full ones
// (transport/absent_link.h), and what is to be said to it is kept here. A node that is not linked in time is lost to the query. That the
// query has failed is a last word to it, which is kept until the two are linked: a participant may hear of the query later than
// the others, and the issuer may have begun to wait later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
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
  /// Last words that are kept for a node, each at most about 1 KiB: the latest.
  static constexpr size_t kLastWordLimit = 1024;

  /// `context` outlives it. `limit`: for how long a query waits.
  LinkWaits(const QueryContext& context, base::Nanoseconds limit)
      : context_(context), limit_(limit) {}

  /// A query is declared: which links are to be made, and who is told if it has failed before.
  void begin(const TrackedQuery& query, Outbound& out) const;
  /// Keeps what cannot be sent yet.
  void hold(Outbound& out);
  /// The node is in reach: gives out what was kept for it. The queries do not wait for it any more; those that another
  /// process of the node has begun are lost. Returns whether workers are to be alerted.
  bool end(KnownQueries& known, uint32_t node, Outbound& out);
  /// A query has waited for the node for too long, and fails because of `why`. If one of the two has begun it, the other one is
  /// told when they are linked: nobody else may be able to tell it, or the issuer.
  void give_up(const TrackedQuery& query, uint32_t node, const Status& why);
  /// A worker was refused a query because of `why`. If the process that has begun it is not linked here (a former one of that
  /// number may be), it is told when it is linked: otherwise the other participants would wait for this node.
  void refuse(const QueryId& id, const Status& why);
  /// The node is lost: nothing is to be said to that process.
  void lose(uint32_t node);
  /// The number is taken away: nothing is to be said to whoever had it.
  void forget(uint32_t node);
  /// Answers the queries of `all` that have waited for too long. Forgets what was kept for nodes that none waits for,
  /// unless the link with them may stay.
  template <typename Queries>
  std::vector<std::shared_ptr<TrackedQuery>> late(const Queries& all);

 private:
  using Kept = std::list<std::pair<uint32_t, wire::QueryMessage>>;

  void keep_last_word(uint32_t node, const wire::QueryMessage& word);

  const QueryContext& context_;
  const base::Nanoseconds limit_;
  Kept kept_;                            // to whom, in order
  std::map<uint32_t, Kept> last_words_;  // by whom they are for
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
