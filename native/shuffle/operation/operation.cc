#include "shuffle/operation/operation.h"

#include "base/error.h"

namespace faro::shuffle {

// Always the query itself, if it is about one: the call may have sent a row already, and must not answer
// that it would wait.
Outcome Operation::lack_memory() noexcept {
  if (query_ != nullptr) {
    worker_.queries.fail_for_memory(*query_);
    if (status_ == nullptr) return Outcome::would_wait;
    *status_ = worker_.queries.no_memory();
    return Outcome::failed;
  }
  if (const std::shared_ptr<Query> biggest = worker_.queries.biggest_overflow_user())
    worker_.queries.fail_for_memory(*biggest);
  return Outcome::would_wait;
}

Outcome Operation::overflow_exhausted(const std::shared_ptr<Query>& query, uint64_t bytes,
                                      const Status& cause) {
  const std::string& name = worker_.own_node().name;
  if (worker_.overflow.is_above_query_limit(query->usage, bytes)) {
    worker_.queries.fail(*query,
                         base::error(Code::overflow_exhausted, "{} on {}", cause.message(), name));
    return Outcome::failed;
  }
  std::shared_ptr<Query> victim = worker_.queries.biggest_overflow_user();
  const uint64_t own = query->usage.bytes.load(std::memory_order_relaxed) + bytes;
  if (victim == nullptr || victim->usage.bytes.load(std::memory_order_relaxed) < own)
    victim = query;
  worker_.queries.fail(
      *victim,
      base::error(Code::overflow_exhausted, "{}; this query uses most of it on {}: {} bytes",
                  cause.message(), name, victim->usage.bytes.load(std::memory_order_relaxed)));
  // The caller may be in the middle of a list that handling the alert would change: it is handled
  // when the next operation begins.
  return victim == query ? Outcome::failed : blocked_on_.overflow(query->id);
}

}  // namespace faro::shuffle
