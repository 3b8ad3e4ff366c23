#include "shuffle/query/abandoned_queries.h"

#include <algorithm>
#include <optional>

#include "shuffle/query/tracked_query.h"

namespace faro::shuffle {
namespace {

// When it is to be told why it fails, if no better cause comes.
base::Nanoseconds due_of(TrackedQuery& query) {
  return query.failed() ? base::kForever : query.part().last_resorts().due();
}

}  // namespace

void AbandonedQueries::abandon(Query& query, uint32_t worker, const Status& cause,
                               base::Nanoseconds now) {
  bool is_sooner = false;
  change([&](Outbound&) {
    if (query.failed() || query.outcome_known()) return false;
    tracked(query).part().last_resorts().add(worker, cause, now);
    is_sooner = due_of(tracked(query)) < next_due();
    if (is_sooner) due_.store(due_of(tracked(query)), std::memory_order_release);
    return false;
  });
  if (is_sooner) environment_.look_soon();
}

void AbandonedQueries::tell_abandoned(Query& query, uint32_t worker) {
  change([&](Outbound& out) {
    const std::optional<Status> cause = tracked(query).part().last_resorts().take(worker);
    return cause && tracked(query).fail_here(*cause, out);
  });
}

void AbandonedQueries::on_due(base::Nanoseconds now) {
  change([&](Outbound& out) { return tell_due(now, out); });
}

bool AbandonedQueries::tell_due(base::Nanoseconds now, Outbound& out) {
  if (now < next_due()) return false;
  base::Nanoseconds next = base::kForever;
  bool alert = false;
  for (const auto& [id, query] : known_.all()) {
    if (now >= due_of(*query))
      alert |= query->fail_here(*query->part().last_resorts().take_first(), out);
    next = std::min(next, due_of(*query));
  }
  due_.store(next, std::memory_order_release);
  return alert;
}

}  // namespace faro::shuffle
