#include "shuffle/operation/operation.h"

#include "base/error.h"
#include "shuffle/operation/shuffle_context.h"

namespace faro::shuffle {

// Always the query itself, if it is about one: the call may have sent a row already, and must not answer
// that it would wait.
Outcome Operation::lack_memory() noexcept {
  if (query_ != nullptr) {
    worker_.queries.fail_for_memory(*query_);
    if (side_ == nullptr) return Outcome::would_wait;
    return side_->fail(worker_.queries.no_memory());
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

// --- waiting

void Operation::begin_wait(base::Nanoseconds now) noexcept {
  waiting_.store(true, std::memory_order_relaxed);
  begin_blocked(now);
}

void Operation::end_wait() noexcept {
  if (blocked_on_.is_published()) blocked_on_.withdraw();
  end_blocked();
  waiting_.store(false, std::memory_order_release);
}

void Operation::go_on_blocked(base::Nanoseconds now) noexcept {
  if (blocked_ == nullptr || blocked_on_.counts() != blocked_.get()) begin_blocked(now);
}

void Operation::begin_blocked(base::Nanoseconds now) noexcept {
  end_blocked();
  blocked_on_.count();
  blocked_ = blocked_on_.shared_counts();
  blocked_since_ = now;
}

void Operation::end_blocked() noexcept {
  if (blocked_ == nullptr) return;
  counters::count(blocked_->ns, worker_.now() - blocked_since_);
  blocked_ = nullptr;
}

// A call that waits may have to go on; one that was armed is done.
void Operation::withdraw() noexcept {
  blocked_on_.withdraw();
  if (!waiting_.load(std::memory_order_relaxed)) end_blocked();
}

}  // namespace faro::shuffle
