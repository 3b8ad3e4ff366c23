// AbandonedQueries: workers that have closed shuffles before their end; and when the others are told, unless a better cause comes.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "faro/status.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query.h"
#include "shuffle/query/query_changes.h"

namespace faro::shuffle {

/// The part of QueryTable that is about them. Threads: any.
class AbandonedQueries : protected QueryChanges {
 public:
  /// A local worker has closed a shuffle before its end. Nobody is told yet: what else fails the query before next_due(), for
  /// instance its Worker::end_query with a cause, is why it fails. Repeatable.
  void abandon(Query& query, uint32_t worker, const Status& cause, base::Nanoseconds now);
  /// The worker gives no better cause: fails the query by that which `abandon` has kept of it.
  void tell_abandoned(Query& query, uint32_t worker);
  /// When on_due has something to tell, or before. Threads: any.
  base::Nanoseconds next_due() const noexcept { return due_.load(std::memory_order_acquire); }
  void on_due(base::Nanoseconds now);

 protected:
  using QueryChanges::QueryChanges;
  ~AbandonedQueries() = default;

  /// Under the lock.
  bool tell_due(base::Nanoseconds now, Outbound& out);

 private:
  std::atomic<base::Nanoseconds> due_{base::kForever};  // written under the lock
};

}  // namespace faro::shuffle
