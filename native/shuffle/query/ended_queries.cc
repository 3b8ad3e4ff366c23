#include "shuffle/query/ended_queries.h"

namespace faro::shuffle {

bool EndedQueries::contains(const QueryId& id) const {
  const auto known = of_issuer_.find(id.issuer);
  if (known == of_issuer_.end()) return false;
  return id.counter <= known->second.low_water || known->second.above.count(id.counter) != 0;
}

void EndedQueries::add(const QueryId& id) {
  Ended& ended = of_issuer_[id.issuer];
  if (id.counter <= ended.low_water) return;
  ended.above.insert(id.counter);
  join(ended);
}

void EndedQueries::add_unverified(const QueryId& id) {
  if (of_issuer_[id.issuer].above.size() < kUnverifiedLimit) add(id);
}

void EndedQueries::raise(uint32_t issuer, uint64_t counter) {
  Ended& ended = of_issuer_[issuer];
  if (counter <= ended.low_water) return;
  ended.low_water = counter;
  ended.above.erase(ended.above.begin(), ended.above.upper_bound(counter));
  join(ended);
}

uint64_t EndedQueries::low_water(uint32_t issuer) const {
  const auto known = of_issuer_.find(issuer);
  return known == of_issuer_.end() ? 0 : known->second.low_water;
}

// What follows the mark without a gap moves it.
void EndedQueries::join(Ended& ended) {
  while (!ended.above.empty() && *ended.above.begin() == ended.low_water + 1) {
    ++ended.low_water;
    ended.above.erase(ended.above.begin());
  }
}

}  // namespace faro::shuffle
