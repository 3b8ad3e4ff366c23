#include "shuffle/query/peer_messages.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "shuffle/query/query_messages.h"

namespace faro::shuffle {
namespace {

/// It has failed, its coordinator has not decided, and no worker of this node need ever use it: it is unverified; or none of
/// them has used it yet, as when it was cancelled here, and none was declared for it.
bool is_over_before_use(TrackedQuery& query, const ClusterView& cluster) {
  if (!query.failed() || query.outcome_known()) return false;
  return query.unverified() != nullptr || (!cluster.needs_declaration() && !query.part().is_used());
}

}  // namespace

bool PeerMessages::handle(uint32_t peer, const wire::QueryMessage& message, Outbound& out) {
  using Kind = wire::QueryMessageKind;
  switch (message.kind) {
    case Kind::fail:
      return on_fail(peer, message, out);
    case Kind::ended:
      return on_ended(peer, message, out);
    case Kind::stop:
      return on_stop(peer, message, out);
    case Kind::await:
      return on_await(peer, message, out);
    case Kind::outcome:
      return on_outcome(peer, message, out);
    case Kind::confirm:
      on_confirm(peer, to_id(message.query));
      return false;
    case Kind::released:
    case Kind::rest:
      break;  // of no query
  }
  return false;
}

// nullptr: nothing happens, but that whoever still asks the coordinator is answered, or it would wait forever.
KnownQueries::Pointer PeerMessages::query_that_peer_may_fail(uint32_t peer, const QueryId& id,
                                                             Outbound& out) {
  // What others than the coordinator say of an unverified query is nothing to act upon.
  const bool remembers = decides(id) || peer == id.issuer;
  KnownQueries::Pointer query = remembers ? known_.hear(id, peer, out) : known_.find(id);
  if (!decides(id)) return query;
  if (query == nullptr) {
    const Status* const failure = context_.ended.failure(id);
    out.send(peer,
             outcome_of(id, context_.cluster.own(),
                        failure != nullptr
                            ? *failure
                            : base::error(Code::query_ended, "query {} has ended", id.to_string()),
                        0));
    return nullptr;
  }
  if (query->unverified() != nullptr || query->nodes().contains(peer)) return query;
  query->dismiss(peer, out);
  return nullptr;
}

bool PeerMessages::on_fail(uint32_t peer, const wire::QueryMessage& message, Outbound& out) {
  const QueryId id = to_id(message.query);
  const uint32_t own = context_.cluster.own();
  // It has failed and is over here, as a query may whose coordinator was not linked in time.
  const Status* const failure = peer == id.issuer && !context_.cluster.is_wanted_for_good(peer)
                                    ? context_.ended.failure(id)
                                    : nullptr;
  if (failure != nullptr && known_.find(id) == nullptr) {
    out.send(peer, ended_of(id, own, *failure, 0));
    return false;
  }
  const KnownQueries::Pointer query = query_that_peer_may_fail(peer, id, out);
  if (query == nullptr) return false;
  const bool had_failed = query->failed();
  const Status told = status_of(message, context_.cluster.node_count());
  const bool alert = query->fail_by_peer(
      peer, told.ok() ? Status(Code::query_failed, "failed without a cause") : told, out);
  // A query that has failed before anybody here uses it is over here: its coordinator need not wait.
  if (!decides(id) && is_over_before_use(*query, context_.cluster))
    out.send(id.issuer, ended_of(id, own, query->cause(), 0));
  // Perhaps it only asks.
  if (decides(id) && had_failed) {
    out.send(peer, failure_of(id, own, query->cause()));
  } else if (decides(id) && query->outcome_known()) {
    out.send(peer, outcome_of(id, own, query->outcome(), context_.ended.low_water(own)));
  }
  return alert;
}

bool PeerMessages::on_ended(uint32_t peer, const wire::QueryMessage& message, Outbound& out) {
  const QueryId id = to_id(message.query);
  if (!decides(id)) return false;
  const KnownQueries::Pointer query = query_that_peer_may_fail(peer, id, out);
  if (query == nullptr) return false;
  const Status told = status_of(message, context_.cluster.node_count());
  const bool was_decided = query->outcome_known();
  if (!told.ok()) (void)query->fail_by_peer(peer, told, out);
  query->vote(peer, message.number, out);
  // It may not have been linked when the others were told.
  const uint32_t own = context_.cluster.own();
  if (was_decided && query->failed()) {
    out.send(peer, outcome_of(id, own, query->outcome(), context_.ended.low_water(own)));
  } else if (told.ok() && query->failed() && !query->outcome_known()) {
    out.send(peer, failure_of(id, own, query->cause()));
  }
  known_.forget_if_over(*query);
  return query->failed() || query->outcome_known();
}

bool PeerMessages::on_stop(uint32_t peer, const wire::QueryMessage& message, Outbound& out) {
  const Stop stop{message.first, static_cast<uint32_t>(message.second)};
  // Nobody stops for another's workers.
  if (!context_.cluster.has_worker(peer, stop.receiver)) return false;
  const KnownQueries::Pointer query = known_.hear(to_id(message.query), peer, out);
  if (query == nullptr || !query->nodes().contains(peer) || !query->part().may_add(stop))
    return false;
  if (!known_.charge(*query, peer, out)) return false;
  query->part().add(stop);
  return true;
}

// A receiver there waits for a worker of this node.
bool PeerMessages::on_await(uint32_t peer, const wire::QueryMessage& message, Outbound& out) {
  const QueryId id = to_id(message.query);
  const ClusterView& cluster = context_.cluster;
  const Awaited awaited{static_cast<uint32_t>(message.second), message.first, peer};
  if (!cluster.has_worker(cluster.own(), awaited.sender)) return false;
  const KnownQueries::Pointer query = known_.hear(id, peer, out);
  if (query == nullptr) {
    // It has come too late for a query that has ended here.
    if (!known_.can_live(id)) out.send(peer, failure_of(id, cluster.own(), known_.why_over(id)));
    return false;
  }
  if (!query->nodes().contains(peer)) return false;
  if (decides(id) && query->failed())
    out.send(peer, failure_of(id, cluster.own(), query->cause()));  // as on_ended
  if (query->failed() || query->outcome_known()) return false;
  QueryStages& stages = query->part().stages();
  Awaiting awaiting{message.number, message.text.substr(0, Awaiting::kTextLimit)};
  if (query->unverified() == nullptr) {
    if (const std::optional<Status> verdict = stages.judge(awaited, awaiting))
      return query->fail_if(*verdict, out);
  }
  if (stages.may_remember(awaited) && known_.charge(*query, peer, out))
    stages.remember(awaited, std::move(awaiting));
  return false;
}

bool PeerMessages::on_outcome(uint32_t peer, const wire::QueryMessage& message, Outbound& out) {
  const QueryId id = to_id(message.query);
  if (peer != id.issuer) return false;
  const KnownQueries::Pointer query = known_.find(id);
  const bool is_news = query != nullptr &&
                       query->learn_outcome(status_of(message, context_.cluster.node_count()), out);
  if (is_news && !query->is_for_late_workers()) known_.forget_if_over(*query);
  if (context_.cluster.is_of_this_life(id))
    context_.ended.raise({std::min(message.number, id.counter), id.incarnation, id.issuer});
  out.send(peer, message_of(wire::QueryMessageKind::confirm, id, context_.cluster.own(), 0));
  return is_news;
}

void PeerMessages::on_confirm(uint32_t peer, const QueryId& id) {
  if (!decides(id)) return;
  const KnownQueries::Pointer query = known_.find(id);
  if (query == nullptr || !query->outcome_known()) return;
  query->coordinator()->confirm(peer);
  known_.forget_if_over(*query);
}

}  // namespace faro::shuffle
