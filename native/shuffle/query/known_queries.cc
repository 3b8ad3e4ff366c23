#include "shuffle/query/known_queries.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "shuffle/query/query_messages.h"

namespace faro::shuffle {

QueryId KnownQueries::begin() {
  const uint32_t own = context_.cluster.own();
  return {++begun_, context_.cluster.incarnation(own), own, 0};
}

KnownQueries::Pointer KnownQueries::find(const QueryId& id) const {
  const auto known = queries_.find(id);
  return known == queries_.end() ? nullptr : known->second;
}

std::vector<KnownQueries::Pointer> KnownQueries::waiting_for(uint32_t node) const {
  std::vector<Pointer> waiting;
  for (const auto& [id, query] : queries_) {
    if (query->nodes().awaits(node)) waiting.push_back(query);
  }
  return waiting;
}

std::vector<KnownQueries::Pointer> KnownQueries::not_lost_with(uint32_t node) const {
  std::vector<Pointer> concerned = waiting_for(node);
  for (const auto& [id, query] : queries_) {
    const QueryNodes& nodes = query->nodes();
    if (id.issuer == node && !nodes.awaits(node) && !nodes.has_lost(node))
      concerned.push_back(query);
  }
  return concerned;
}

void KnownQueries::add(const Pointer& query) {
  queries_.emplace(query->id, query);
  context_.report.show_running(queries_.size());
}

Result<KnownQueries::Pointer> KnownQueries::find_or_make(const QueryId& id) {
  if (Pointer known = find(id)) return known;
  if (!can_live(id) || used_count() >= kLimit) return why_not(id);
  auto query = std::make_shared<TrackedQuery>(id, context_);
  add(query);
  query->show();
  return query;
}

bool KnownQueries::can_live(const QueryId& id) const {
  const ClusterView& cluster = context_.cluster;
  // With an issuer that is gone it ended, too: nobody else would end it.
  if (id.counter == 0 || !cluster.may_live(id)) return false;
  if (id.issuer == cluster.own() && id.counter > begun_) return false;
  return !context_.ended.contains(id);
}

Status KnownQueries::why_not(const QueryId& id) const {
  if (can_live(id)) {
    return base::error(Code::limit_exceeded, "{} queries are running, the limit", kLimit);
  }
  const ClusterView& cluster = context_.cluster;
  const bool is_known_issuer = id.issuer < cluster.node_count();
  if (!is_known_issuer || id.counter == 0) {
    return base::error(
               Code::query_ended,
               "query {} was never begun: the nodes of this cluster are 0 … {}, and queries "
               "of each count from 1",
               id.to_string(), cluster.node_count() - 1)
        .of_query(id);
  }
  if (!cluster.is_there(id.issuer) && !cluster.is_to_come(id.issuer))
    return cluster.loss(id.issuer).of_query(id);
  if (!cluster.is_of_this_life(id) && !context_.ended.contains(id)) {
    return base::error(Code::peer_lost,
                       "query {} was begun by another process than the one that is {} now: it has "
                       "ended with it",
                       id.to_string(), cluster.name(id.issuer))
        .of_node(id.issuer)
        .of_query(id);
  }
  // The next process with that number has not come yet.
  if (!cluster.may_live(id) && !context_.ended.contains(id)) {
    return base::error(Code::peer_lost,
                       "query {} was begun by a process that was {} before it was lost or removed: "
                       "it has ended with it",
                       id.to_string(), cluster.name(id.issuer))
        .of_node(id.issuer)
        .of_query(id);
  }
  const bool never_begun = id.issuer == cluster.own() && id.counter > begun_;
  return base::error(Code::query_ended, "query {} {} {}", id.to_string(),
                     never_begun ? "was never begun by" : "has ended on", cluster.own_name())
      .of_query(id);
}

Status KnownQueries::why_over(const QueryId& id) const {
  const Status* const failure = context_.ended.failure(id);
  return failure != nullptr ? *failure : why_not(id);
}

Status KnownQueries::check_declared(const QueryId& id) const {
  if (!context_.cluster.needs_declaration()) return Status::Ok();
  const Pointer known = find(id);
  const bool is_failed = known != nullptr && known->failed();  // and why is told
  if (known == nullptr ? !can_live(id) : known->part().is_declared() || is_failed)
    return Status::Ok();
  return base::error(Code::wrong_state,
                     "query {}: with cluster.node_limit every query has the workers that were "
                     "declared for it: call declare_query first",
                     id.to_string());
}

// --- what peers speak of

KnownQueries::Pointer KnownQueries::hear(const QueryId& id, uint32_t peer, Outbound& out) {
  Pointer query = find(id);
  if (query == nullptr) {
    if (!can_live(id) || !make_room(peer, nullptr, out)) return nullptr;
    query = std::make_shared<TrackedQuery>(id, context_, peer);
    add(query);
    unverified_.add(query->unverified()->quota());
    query->show();
  } else if (Unverified* const unverified = query->unverified()) {
    unverified->mention(context_.now);
  }
  return query;
}

// This node may not know yet, or not any more, who has begun a query that others run.
Status KnownQueries::why_not_heard(const QueryId& id) const {
  const ClusterView& cluster = context_.cluster;
  if (can_live(id)) {
    return base::error(Code::query_unopened,
                       "{} keeps the rows of {} queries that it does not know, all it can",
                       cluster.own_name(), UnverifiedQueries::kQuota);
  }
  const bool is_of_another = id.issuer < cluster.node_count() && id.issuer != cluster.own();
  if (!is_of_another || cluster.is_wanted_for_good(id.issuer)) return Status::Ok();
  if (cluster.is_there(id.issuer) && cluster.is_of_this_life(id)) return Status::Ok();
  if (!cluster.is_unknown(id.issuer)) return why_over(id);
  return base::error(
      Code::query_unopened,
      "rows came to {}, which does not know {}, the node that has begun the query: it was "
      "not told of it yet (Nodes::add), or has removed it",
      cluster.own_name(), cluster.name(id.issuer));
}

bool KnownQueries::make_room(uint32_t peer, const TrackedQuery* keep, Outbound& out) {
  while (!unverified_.has_room(peer)) {
    TrackedQuery* const oldest = unverified_.oldest(peer, keep);
    if (oldest == nullptr) return false;
    drop(*oldest, out);
  }
  return true;
}

bool KnownQueries::charge(TrackedQuery& query, uint32_t peer, Outbound& out) {
  Unverified* const unverified = query.unverified();
  if (unverified == nullptr) return true;
  if (!make_room(peer, &query, out)) return false;
  unverified_.charge(unverified->quota(), peer);
  return true;
}

void KnownQueries::verify(TrackedQuery& query, Outbound& out) {
  if (query.unverified() == nullptr) return;
  unverified_.remove(query.unverified()->quota());
  query.verify(out);
}

void KnownQueries::await_issuer(TrackedQuery& query, Outbound& out) const {
  if (query.outcome_known() || !context_.cluster.is_out_of_reach(query.id.issuer)) return;
  query.nodes().await(query.id.issuer);
  out.wanted.push_back(query.id.issuer);
}

void KnownQueries::forget_former_life(uint32_t peer) {
  for (const auto& [id, query] : queries_) {
    Unverified* const unverified = query->unverified();
    if (unverified == nullptr || query->coordinator() != nullptr) continue;
    query->forget_former_life(peer);
    unverified_.discharge(unverified->quota(), peer);
  }
}

void KnownQueries::lose(uint32_t node, const Status& cause, Outbound& out) {
  std::vector<Pointer> concerned;
  std::vector<QueryId> failed;
  for (const auto& [id, query] : queries_) {
    query->nodes().lose(node, cause);
    if (query->nodes().contains(node) || id.issuer == node) concerned.push_back(query);
  }
  for (const Pointer& query : concerned) {
    const bool is_kept = query->unverified() != nullptr && query->outcome_known();
    if (query->lose_node(node, cause, out)) failed.push_back(query->id);
    if (query->coordinator() != nullptr || (query->id.issuer == node && !is_kept))
      forget_if_over(*query);
  }
  context_.report.log_failures(std::move(failed), cause);
}

void KnownQueries::lose(TrackedQuery& query, uint32_t node, const Status& cause, Outbound& out) {
  query.nodes().lose(node, cause);
  if (query.lose_node(node, cause, out)) context_.report.log_failures({query.id}, cause);
  if (query.coordinator() != nullptr || query.id.issuer == node) forget_if_over(query);
}

// --- queries of which the engine has not said who takes part

std::vector<KnownQueries::Pointer> KnownQueries::undeclared_for(base::Nanoseconds limit) const {
  std::vector<Pointer> found;
  for (const auto& [id, query] : queries_) {
    const Coordinator* const coordinator = query->coordinator();
    if (coordinator == nullptr || query->unverified() == nullptr) continue;
    const std::optional<base::Nanoseconds> since = coordinator->voted_since();
    if (since && context_.now - *since >= limit) found.push_back(query);
  }
  return found;
}

void KnownQueries::give_up_undeclared(TrackedQuery& query, Outbound& out) {
  const ClusterView& cluster = context_.cluster;
  const Status cause = base::error(
      Code::query_failed,
      "query {}: nodes have ended their part, but {}, which has begun it, did not say who takes "
      "part (declare_query) within query.unopened_timeout_ms = {}",
      query.id.to_string(), cluster.own_name(), context_.unopened_timeout_ns / 1'000'000);
  verify(query, out);
  (void)query.fail_here(cause, out);
  end_undeclared(query, query.cause(), out);
}

// --- forgetting

// What the coordinator knows of an unverified query it says again when this node takes part. If it
// is this node, it is an end that nobody has waited for: a worker that comes later is told.
void KnownQueries::drop(TrackedQuery& query, Outbound& out) {
  const Coordinator* const coordinator = query.coordinator();
  if (coordinator == nullptr) return forget_unverified(query);
  const ClusterView& cluster = context_.cluster;
  const Status cause = base::error(
      Code::query_ended, "query {} was not used by {}, and was forgotten for {} later ones",
      query.id.to_string(), cluster.own_name(), UnverifiedQueries::kQuota);
  end_undeclared(query, cause, out);
}

// A node that has voted waits for the outcome.
void KnownQueries::end_undeclared(TrackedQuery& query, const Status& cause, Outbound& out) {
  const ClusterView& cluster = context_.cluster;
  const Coordinator* const coordinator = query.coordinator();
  query.settle(cause);
  for (const uint32_t n : cluster.there()) {
    const bool has_voted = query.nodes().contains(n) && coordinator->has_voted(n);
    if (!has_voted || n == cluster.own()) continue;
    out.send(n,
             outcome_of(query.id, cluster.own(), cause, context_.ended.low_water(cluster.own())));
  }
  context_.ended.add(query.id);
  forget(query);
}

void KnownQueries::forget_unverified(TrackedQuery& query) {
  if (!query.outcome_known()) {
    query.settle(query.cause());
  } else if (context_.cluster.is_of_this_life(query.id)) {
    context_.ended.add_unverified(query.id);
  }
  forget(query);
}

void KnownQueries::forget_if_over(TrackedQuery& query) {
  if (!query.is_over()) return;
  // Only the coordinator knows whether an unverified query ever began, and nothing more comes of an
  // incarnation that is gone.
  if (context_.cluster.may_be_heard_of(query.id) &&
      (query.unverified() == nullptr || query.coordinator() != nullptr)) {
    context_.ended.add(query.id);
  }
  forget(query);
}

void KnownQueries::forget_settled_unverified() {
  for (auto known = queries_.begin(); known != queries_.end();) {
    TrackedQuery& query = *(known++)->second;
    if (query.unverified() != nullptr && query.outcome_known()) forget(query);
  }
}

void KnownQueries::forget(TrackedQuery& query) {
  const auto known = queries_.find(query.id);
  if (known == queries_.end() || known->second.get() != &query) return;  // a worker still has it
  context_.ended.remember_failure(query.id, query.outcome(), query.part().is_used());
  base::log(LogLevel::debug, "{}: query {} has ended: {}", context_.cluster.own_name(),
            query.id.to_string(), query.outcome().ok() ? "done" : "failed");
  const Pointer last = std::move(known->second);
  queries_.erase(known);
  if (query.unverified() != nullptr) unverified_.remove(query.unverified()->quota());
  query.hide();
  context_.report.show_running(queries_.size());
}

}  // namespace faro::shuffle
