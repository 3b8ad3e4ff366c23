#include "shuffle/query/query_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "base/each.h"
#include "base/error.h"
#include "shuffle/query/peer_messages.h"
#include "shuffle/query/query_messages.h"

namespace faro::shuffle {
QueryTable::QueryTable(Shape shape, QueryEnvironment& environment, const QueryTimeouts& timeouts)
    : AbandonedQueries(std::move(shape), environment, timeouts),
      idle_links_(context_, known_,
                  [this](uint32_t node, auto step) { return environment_.rest(node, step); },
                  {.idle = timeouts.idle_ns, .limit = timeouts.link_ns}) {}

void QueryTable::show_in(counters::CounterFile& file, base::Nanoseconds now) {
  context_.now = now;
  context_.report.show_in(file);
}

// --- which queries there are

QueryId QueryTable::begin() {
  std::lock_guard lock(mutex_);
  return known_.begin();
}

Status QueryTable::declare(const QueryId& id, const std::vector<uint32_t>& workers) {
  Status status;
  change([&](Outbound& out) {
    status = declare_locked(id, workers, out);
    return !out.empty();
  });
  return status;
}

Status QueryTable::declare_locked(const QueryId& id, const std::vector<uint32_t>& workers,
                                  Outbound& out) {
  const ClusterView& cluster = context_.cluster;
  for (uint32_t worker : workers) {
    if (worker >= cluster.worker_count()) {
      return base::error(Code::invalid_argument, "query {}: worker {} does not exist (0 … {})",
                         id.to_string(), worker, cluster.worker_count() - 1);
    }
  }
  if (workers.empty() && cluster.needs_declaration()) {
    return base::error(Code::invalid_argument,
                       "query {}: with cluster.node_limit the workers of a query are named",
                       id.to_string());
  }
  FARO_RETURN_IF_ERROR(drains_.check(id, workers));
  FARO_ASSIGN_OR_RETURN(const KnownQueries::Pointer query, make_or_refuse(id));
  // It has failed, and its issuer, which would end it here with its own end, is gone.
  // Its workers end it all the same.
  if (query->unverified() != nullptr && query->outcome_known() && !cluster.is_there(id.issuer)) {
    query->part().name_workers(workers);
    return query->outcome();
  }
  if (query->part().is_declared() || query->part().is_used()) {
    return base::error(Code::wrong_state, "query {} is in use already; declare it before",
                       id.to_string());
  }
  query->declare(workers);
  link_waits_.begin(*query, out);
  known_.verify(*query, out);
  query->show();
  if (query->coordinator() != nullptr) {
    (void)query->fail_if_lost(out);
    // A coordinator that takes no part may have been waited for.
    query->decide_if_all_voted(out);
    known_.forget_if_over(*query);
  }
  return Status::Ok();
}

// What this node's engine is refused the issuer is told, or it would wait for this node.
Result<KnownQueries::Pointer> QueryTable::make_or_refuse(const QueryId& id) {
  Result<KnownQueries::Pointer> query = closed_.ok() ? known_.find_or_make(id) : closed_;
  if (query.ok()) return query;
  const Status* const failure = context_.ended.failure_before_use(id);
  if (failure != nullptr && query.status().code() == Code::query_ended) query = *failure;
  link_waits_.refuse(id, query.status());
  return query;
}

std::shared_ptr<Query> QueryTable::find(const QueryId& id) {
  std::lock_guard lock(mutex_);
  return known_.find(id);
}

std::shared_ptr<Query> QueryTable::hear(const QueryId& id, uint32_t from_node) {
  std::shared_ptr<TrackedQuery> query;
  change([&](Outbound& out) {
    if (!closed_.ok()) return false;  // what comes is thrown away
    query = known_.hear(id, from_node, out);
    if (query == nullptr && from_node != context_.cluster.own()) {
      // Its rows are thrown away, so it must not end well. Each node that takes part is told, and
      // tells.
      const Status cause = known_.why_not_heard(id);
      if (!cause.ok()) out.send(from_node, failure_of(id, context_.cluster.own(), cause));
    }
    if (query != nullptr && !query->nodes().contains(from_node)) {
      out.end_link(
          from_node,
          base::error(Code::protocol_error,
                      "it opens a shuffle of query {}, in which it takes no part", id.to_string()));
      query = nullptr;
    }
    return false;
  });
  return query;
}

Result<std::shared_ptr<Query>> QueryTable::use(const QueryId& id) {
  Result<KnownQueries::Pointer> query = KnownQueries::Pointer();
  change([&](Outbound& out) {
    if (Status status = known_.check_declared(id); closed_.ok() && !status.ok()) {
      query = std::move(status);
      return false;
    }
    query = make_or_refuse(id);
    if (!query.ok()) return false;
    (*query)->part().use();
    known_.verify(**query, out);
    known_.await_issuer(**query, out);
    (void)(*query)->fail_if_lost(out);
    return !out.empty();
  });
  if (!query.ok()) return query.status();
  return std::shared_ptr<Query>(std::move(*query));
}

bool QueryTable::takes_part(const Query& query, uint32_t node) const {
  std::lock_guard lock(mutex_);
  return tracked(query).nodes().contains(node);
}

std::shared_ptr<Query> QueryTable::biggest_overflow_user() {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Query> biggest;
  for (const auto& [id, query] : known_.all()) {
    if (query->failed()) continue;
    if (biggest == nullptr || query->usage.bytes.load(std::memory_order_relaxed) >
                                  biggest->usage.bytes.load(std::memory_order_relaxed)) {
      biggest = query;
    }
  }
  return biggest;
}

uint64_t QueryTable::running_count() const {
  std::lock_guard lock(mutex_);
  return known_.all().size();
}

// --- how they fail

void QueryTable::fail(Query& query, const Status& cause) {
  change([&](Outbound& out) { return tracked(query).fail_here(cause, out); });
}

void QueryTable::fail_for_memory(Query& query) noexcept {
  try {
    fail(query, no_memory());
  } catch (const std::bad_alloc&) {
    tracked(query).mark_for_memory();
    some_must_fail_.store(true, std::memory_order_release);
  }
}

void QueryTable::fail_by_sender(Query& query, uint32_t node, const Status& cause) {
  change([&](Outbound& out) { return tracked(query).fail_by_sender(node, cause, out); });
}

void QueryTable::lose_rows(Query& query, uint32_t node) {
  change([&](Outbound& out) {
    if (const Status* const loss = tracked(query).nodes().loss(node))
      return tracked(query).fail_here(*loss, out);
    const Status lost = base::error(Code::peer_lost, "{} was lost", context_.cluster.name(node));
    return tracked(query).fail_here(lost.of_node(node), out);
  });
}

Status QueryTable::cancel(const QueryId& id, const Status& cause) {
  Status status;
  change([&](Outbound& out) {
    const Result<KnownQueries::Pointer> query = closed_.ok() ? known_.find_or_make(id) : closed_;
    status = query.status();
    if (!query.ok()) return false;
    if ((*query)->outcome_known()) {
      status = base::error(Code::query_ended, "query {} has ended", id.to_string()).of_query(id);
      return false;
    }
    // Why is kept for workers that come late, as long as none of them has used it.
    if ((*query)->failed()) return false;
    known_.verify(**query, out);
    known_.await_issuer(**query, out);
    return (*query)->fail_here(cause, out);
  });
  return status;
}

void QueryTable::close(const Status& cause) {
  change([&](Outbound& out) {
    if (!closed_.ok()) return false;
    closed_ = cause;
    base::Each each;
    for (const auto& known : known_.all()) each.run([&] { (void)known.second->close(cause, out); });
    known_.forget_settled_unverified();
    return true;
  });
}

// --- what local workers do

void QueryTable::stop(Query& query, uint32_t stage, uint32_t receiver,
                      std::span<const uint32_t> senders) {
  const ClusterView& cluster = context_.cluster;
  std::vector<bool> nodes(cluster.node_count());
  for (uint32_t sender : senders) nodes[cluster.node_of_worker(sender)] = true;
  change([&](Outbound& out) {
    for (uint32_t n = 0; n < nodes.size(); ++n) {
      if (!nodes[n] || tracked(query).nodes().has_lost(n)) continue;
      if (n == cluster.own()) {
        tracked(query).part().add(Stop{stage, receiver});
      } else {
        out.send(n, message_of(wire::QueryMessageKind::stop, query.id, stage,
                               static_cast<int32_t>(receiver)));
      }
    }
    return true;
  });
}

std::vector<uint32_t> QueryTable::stops(Query& query, uint32_t stage) {
  std::lock_guard lock(mutex_);
  return tracked(query).part().stops(stage);
}

void QueryTable::add_unopened(Query& query, uint32_t worker, uint32_t stage, uint32_t sender,
                              base::Nanoseconds now) {
  change([&](Outbound& out) {
    return tracked(query).add_unopened({worker, stage, sender, now}, out);
  });
}

void QueryTable::remove_unopened(Query& query, uint32_t worker, uint32_t stage) {
  std::lock_guard lock(mutex_);
  tracked(query).remove_unopened(worker, stage);
}

void QueryTable::remove_unopened(Query& query, uint32_t worker, uint32_t stage,
                                 uint32_t sender) noexcept {
  std::lock_guard lock(mutex_);
  tracked(query).remove_unopened(worker, stage, sender);
}

Status QueryTable::open_stage(Query& query, uint32_t worker, const ShuffleSpec& spec,
                              const StageLists& lists) {
  Status status;
  change([&](Outbound& out) {
    status = tracked(query).open_stage(worker, spec, lists, out);
    return query.failed();
  });
  return status;
}

void QueryTable::await(Query& query, uint32_t worker, uint32_t stage,
                       std::span<const uint32_t> senders, const StageLists& lists) {
  change([&](Outbound& out) {
    if (query.failed() || query.outcome_known()) return false;
    for (const uint32_t sender : senders) {
      wire::QueryMessage message =
          message_of(wire::QueryMessageKind::await, query.id, stage, static_cast<int32_t>(sender),
                     fmt::format("worker {} opened stage {} with {}", worker, stage, lists.text));
      message.number = lists.digest;
      out.send(node_of_worker(sender), std::move(message));
    }
    return false;
  });
}

void QueryTable::end(Query& query, uint32_t worker) {
  change([&](Outbound& out) {
    tracked(query).end(worker, out);
    known_.forget_if_over(tracked(query));
    return true;
  });
}

// --- what happens to peers

void QueryTable::on_message(uint32_t from_node, const wire::QueryMessage& message) {
  change([&](Outbound& out) {
    if (message.kind == wire::QueryMessageKind::released) {
      drains_.hear(from_node, message.first, message.number);
      return false;
    }
    if (message.kind == wire::QueryMessageKind::rest) {
      if (!idle_links_.hear(from_node, static_cast<wire::RestStep>(message.first), out))
        return false;
      (void)link_waits_.end(known_, from_node, out);
      return true;  // whoever waits for room may have it
    }
    return PeerMessages(context_, known_).handle(from_node, message, out);
  });
}

void QueryTable::on_peer_lost(uint32_t node, const session::PeerView& now, const Status& why) {
  change([&](Outbound& out) {
    drains_.on_peer_lost(node);
    if (now.state == PeerState::parted) {
      context_.cluster.adopt(node, now);
      environment_.link_has_ended(node);
      // Whoever has begun to wait for the node meanwhile could not have another link before.
      if (!known_.waiting_for(node).empty()) out.wanted.push_back(node);
      return false;
    }
    const Status cause = why.of_node(node);
    context_.cluster.lose(node, now, cause, known_.begun());
    environment_.link_has_ended(node);
    link_waits_.lose(node);
    known_.lose(node, cause, out);
    return true;
  });
}

void QueryTable::on_peer_joined(uint32_t node, const session::PeerView& now) {
  change([&](Outbound& out) {
    ClusterView& cluster = context_.cluster;
    const bool is_same = cluster.is_parted(node) && cluster.incarnation(node) == now.incarnation;
    cluster.join(node, now, known_.begun());
    if (!is_same) known_.forget_former_life(node);
    const bool alert = link_waits_.end(known_, node, out);
    drains_.on_peer_joined(node, out);
    return alert;
  });
}

void QueryTable::on_node_added(uint32_t node, const session::PeerView& now) {
  change([&](Outbound& out) {
    drains_.on_node_added(node, out);
    context_.cluster.adopt(node, now);
    return false;
  });
}

void QueryTable::drain(uint32_t node) {
  change([&](Outbound&) {
    drains_.begin(node);
    return false;
  });
}

bool QueryTable::is_drained(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return drains_.is_let_go(node);
}

bool QueryTable::is_own_node_released_by(uint32_t peer) const {
  const std::lock_guard lock(mutex_);
  return drains_.is_own_node_released_by(peer);
}

void QueryTable::on_node_removed(uint32_t node, const session::PeerView& now) {
  change([&](Outbound& out) {
    drains_.forget(node);
    link_waits_.forget(node);
    const std::vector<KnownQueries::Pointer> concerned = known_.not_lost_with(node);
    const Status cause = base::error(Code::peer_lost, "{} was removed from the session of {}",
                                     context_.cluster.name(node), context_.cluster.own_name())
                             .of_node(node);
    context_.cluster.adopt(node, now);
    for (const auto& query : concerned) known_.lose(*query, node, cause, out);
    return !concerned.empty();
  });
}

void QueryTable::on_tick(base::Nanoseconds now) {
  change([&](Outbound& out) {
    context_.now = now;
    out.take(std::move(unsent_));
    return tick_locked(out);
  });
}

bool QueryTable::tick_locked(Outbound& out) {
  bool alert = tell_due(context_.now, out);
  if (some_must_fail_.exchange(false, std::memory_order_acquire)) {
    for (const auto& [id, query] : known_.all()) alert |= query->fail_if_marked(out);
  }
  std::vector<std::shared_ptr<TrackedQuery>> expired;
  std::vector<std::shared_ptr<TrackedQuery>> unbalanced;
  for (const auto& [id, query] : known_.all()) {
    alert |= query->tick(out);
    if (query->expires(out)) expired.push_back(query);
    if (query->coordinator() != nullptr && !query->outcome_known() && query->coordinator()->tick())
      unbalanced.push_back(query);
  }
  for (const std::shared_ptr<TrackedQuery>& query : unbalanced) {
    query->decide_if_all_voted(out);
    alert |= query->outcome_known();
    known_.forget_if_over(*query);
  }
  for (const std::shared_ptr<TrackedQuery>& query : expired) known_.forget_unverified(*query);
  if (context_.cluster.needs_declaration()) {
    for (const auto& query : known_.undeclared_for(context_.unopened_timeout_ns)) {
      known_.give_up_undeclared(*query, out);
      alert = true;
    }
  }
  idle_links_.tick(out);
  const auto late = link_waits_.late(known_.all());
  for (const std::shared_ptr<TrackedQuery>& query : late) {
    for (const uint32_t node : std::set(query->nodes().awaited())) {
      const Status why = environment_.why_unlinked(node);
      link_waits_.give_up(*query, node, why);  // what may find no memory comes first
      known_.lose(*query, node, why, out);
    }
  }
  return alert || !expired.empty() || !late.empty();
}

}  // namespace faro::shuffle
