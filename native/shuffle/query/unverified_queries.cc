#include "shuffle/query/unverified_queries.h"

#include "shuffle/query/tracked_query.h"

namespace faro::shuffle {

TrackedQuery* UnverifiedQueries::oldest(uint32_t peer, const TrackedQuery* keep) const {
  for (TrackedQuery* const query : order_[peer]) {
    if (query != keep && query->part().unopened().empty()) return query;
  }
  return nullptr;
}

void UnverifiedQueries::add(QuotaUse& query) noexcept {
  query.at = query.place.begin();
  order_[query.peer].splice(order_[query.peer].end(), query.place);
  ++used_[query.peer];
  ++size_;
}

void UnverifiedQueries::remove(QuotaUse& query) noexcept {
  for (const auto& [peer, things] : query.more_by_peer) used_[peer] -= things;
  query.more_by_peer.clear();
  order_[query.peer].erase(query.at);
  --used_[query.peer];
  --size_;
}

void UnverifiedQueries::charge(QuotaUse& query, uint32_t peer) {
  ++query.more_by_peer[peer];
  ++used_[peer];
}

void UnverifiedQueries::discharge(QuotaUse& query, uint32_t peer) noexcept {
  const auto charged = query.more_by_peer.find(peer);
  if (charged == query.more_by_peer.end()) return;
  used_[peer] -= charged->second;
  query.more_by_peer.erase(charged);
}

}  // namespace faro::shuffle
