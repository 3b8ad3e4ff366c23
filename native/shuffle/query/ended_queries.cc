#include "shuffle/query/ended_queries.h"

#include <algorithm>
#include <new>

#include "base/planted.h"

namespace faro::shuffle {

bool EndedQueries::contains(const QueryId& id) const {
  const auto known = of_issuer_.find(id.issuer);
  if (known == of_issuer_.end()) return false;
  const Ended& ended = known->second;
  const bool is_of_life =
      ended.incarnation == id.incarnation || base::planted(base::Plant::kept_marks);
  return is_of_life && (id.counter <= ended.low_water || ended.above.contains(id.counter));
}

EndedQueries::Ended& EndedQueries::of_life(const QueryId& id) {
  Ended& ended = of_issuer_[id.issuer];
  if (ended.incarnation != id.incarnation && !base::planted(base::Plant::kept_marks))
    ended = Ended{};
  ended.incarnation = id.incarnation;
  return ended;
}

void EndedQueries::add(const QueryId& id) {
  Ended& ended = of_life(id);
  if (id.counter <= ended.low_water) return;
  ended.above.insert(id.counter);
  join(ended);
}

void EndedQueries::add_unverified(const QueryId& id) {
  if (of_life(id).above.size() < kUnverifiedLimit) add(id);
}

void EndedQueries::raise(const QueryId& id) {
  Ended& ended = of_life(id);
  if (id.counter <= ended.low_water) return;
  ended.low_water = id.counter;
  ended.above.erase(ended.above.begin(), ended.above.upper_bound(id.counter));
  join(ended);
}

uint64_t EndedQueries::low_water(uint32_t issuer) const {
  const auto known = of_issuer_.find(issuer);
  return known == of_issuer_.end() ? 0 : known->second.low_water;
}

void EndedQueries::remember_failure(const QueryId& id, const Status& outcome,
                                    bool was_used) noexcept {
  if (outcome.ok()) return;
  try {
    failures_.push_back({id, outcome, was_used});
  } catch (const std::bad_alloc&) {
    return;  // a node that asks is told that it has ended
  }
  if (failures_.size() > kFailureLimit) failures_.pop_front();
}

const EndedQueries::Failure* EndedQueries::find(const QueryId& id) const {
  const auto known = std::find_if(failures_.rbegin(), failures_.rend(),
                                  [&](const Failure& failure) { return failure.id == id; });
  return known == failures_.rend() ? nullptr : &*known;
}

const Status* EndedQueries::failure(const QueryId& id) const {
  const Failure* const known = find(id);
  return known == nullptr ? nullptr : &known->cause;
}

const Status* EndedQueries::failure_before_use(const QueryId& id) const {
  const Failure* const known = find(id);
  return known == nullptr || known->was_used ? nullptr : &known->cause;
}

// What follows the mark without a gap moves it.
void EndedQueries::join(Ended& ended) {
  while (!ended.above.empty() && *ended.above.begin() == ended.low_water + 1) {
    ++ended.low_water;
    ended.above.erase(ended.above.begin());
  }
}

}  // namespace faro::shuffle
