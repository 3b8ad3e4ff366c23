#include "shuffle/query/tracked_query.h"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "base/error.h"
#include "shuffle/query/query_messages.h"

namespace faro::shuffle {
namespace {

// A failure that was met on the way, made one that can end a query: what refuses a call, or makes a whole process
// useless, does neither when it ends a query.
Status cause_of(const Status& met) {
  const Category category = met.category();
  if (category != Category::operation && category != Category::process) return met;
  Status cause(Code::query_failed, met.to_string());
  if (met.node()) cause = cause.of_node(*met.node());
  return met.stage() ? cause.of_stage(*met.stage()) : cause;
}

}  // namespace

TrackedQuery::TrackedQuery(const QueryId& query_id, QueryContext& context)
    : Query(query_id),
      context_(context),
      since_(context.now),
      nodes_(context.cluster.node_count()),
      part_(query_id, context.cluster) {
  if (id.issuer == context.cluster.own()) coordinator_.emplace(id, context.cluster);
  // Which of the others it needs is known when it is declared.
  for (uint32_t n = 0; n < context.cluster.node_count(); ++n) {
    if (!context.cluster.is_wanted_for_good(n)) continue;
    if (const Status why = context.cluster.why_not_in(id, n); !why.ok()) nodes_.lose(n, why);
  }
}

TrackedQuery::TrackedQuery(const QueryId& query_id, QueryContext& context, uint32_t peer)
    : TrackedQuery(query_id, context) {
  unverified_.emplace(*this, peer, context.now);
}

void TrackedQuery::declare(const std::vector<uint32_t>& workers) {
  const ClusterView& cluster = context_.cluster;
  std::vector<bool> nodes(cluster.node_count(), workers.empty());
  std::set<uint32_t> needed = {id.issuer};
  for (const uint32_t worker : workers) needed.insert(cluster.node_of_worker(worker));
  for (const uint32_t worker : workers) nodes[cluster.node_of_worker(worker)] = true;
  set_declared(workers);
  part_.declare(workers);
  if (coordinator_) coordinator_->declare(nodes);
  nodes_.declare(std::move(nodes));
  if (!coordinator_ && !nodes_.contains(cluster.own())) return;
  for (const uint32_t n : needed) {
    if (cluster.is_wanted_for_good(n)) continue;
    if (const Status why = cluster.why_not_in(id, n); !why.ok()) {
      nodes_.lose(n, why);
    } else if (cluster.is_out_of_reach(n)) {
      nodes_.await(n);
    }
  }
}

void TrackedQuery::verify(Outbound& out) {
  if (failed()) out.tell_failed(id, cause());
  const auto told = unverified_->take_failures();
  unverified_.reset();
  if (failed()) {
    context_.report.count_failure();
    context_.report.log_failures({id}, cause());
  }
  for (const auto& [node, cause] : told) {
    if (nodes_.contains(node)) {
      (void)fail_here(cause, out);
    } else {
      dismiss(node, out);
    }
  }
  show();
}

// --- failing

bool TrackedQuery::fail(const Status& cause, bool tell_others, Outbound& out) {
  if (!fail_unlogged(cause, tell_others, out)) return false;
  try {
    if (!unverified_) context_.report.log_failures({id}, cause);
  } catch (const std::bad_alloc&) {
    // It has failed all the same.
  }
  return true;
}

bool TrackedQuery::fail_unlogged(const Status& met, bool tell_others, Outbound& out) {
  if (failed() || outcome_known()) return false;
  Outbound told;
  const uint32_t own = context_.cluster.own();
  const Status cause = cause_of(met).of_query(id).of_node(own);
  const auto tell = [&](uint32_t n) {
    const bool is_concerned = nodes_.contains(n) || n == id.issuer;
    if (is_concerned && n != own && !nodes_.has_lost(n)) told.send(n, failure_of(id, own, cause));
  };
  if (tell_others) {
    std::ranges::for_each(context_.cluster.there(), tell);
    for (const uint32_t n : nodes_.awaited()) {
      if (!context_.cluster.is_there(n)) tell(n);
    }
  }
  if (!unverified_) told.tell_failed(id, cause);
  set_failed(cause);
  if (!unverified_) context_.report.count_failure();
  show();
  out.take(std::move(told));
  return true;
}

bool TrackedQuery::fail_here(const Status& found, Outbound& out) {
  // What went wrong for want of memory may be why this goes wrong.
  const Status& cause = must_fail_.load(std::memory_order_relaxed) ? context_.no_memory : found;
  if (coordinator_ || !part_.has_voted()) return fail(cause, true, out);
  if (failed() || outcome_known()) return false;
  part_.ask_to_fail(cause_of(cause).of_query(id).of_node(context_.cluster.own()), context_.now,
                    out);
  return false;
}

bool TrackedQuery::fail_if_lost(Outbound& out) {
  const Status* const loss = nodes_.first_loss();
  return loss != nullptr && fail_here(*loss, out);
}

bool TrackedQuery::fail_by_peer(uint32_t peer, const Status& cause, Outbound& out) {
  if (peer == id.issuer) {
    part_.coordinator_answered();
    if (unverified_) unverified_->coordinator_answered();
    return fail(cause, false, out);
  }
  if (unverified_) {
    if (coordinator_) unverified_->add_failure(peer, cause);
    return false;
  }
  if (!nodes_.contains(peer) || (part_.has_voted() && !coordinator_)) return false;
  return fail(cause, coordinator_.has_value(), out);
}

bool TrackedQuery::fail_by_sender(uint32_t node, const Status& cause, Outbound& out) {
  if (!unverified_) return fail_here(cause, out);
  unverified_->add_failure(node, cause);
  out.send(node, failure_of(id, context_.cluster.own(), cause));
  return false;
}

bool TrackedQuery::fail_if_marked(Outbound& out) {
  return must_fail_.exchange(false, std::memory_order_relaxed) &&
         fail_here(context_.no_memory, out);
}

bool TrackedQuery::close(const Status& why, Outbound& out) {
  const Status cause = part_.last_resorts().take_first().value_or(why);
  const bool fails = part_.is_used() ? fail_here(cause, out) : fail(cause, false, out);
  // There are no more ticks, at which it would see that balances never add up.
  if (coordinator_) decide_if_all_voted(out);
  return fails;
}

// --- this node's part

Status TrackedQuery::open_stage(uint32_t worker, const ShuffleSpec& spec, const StageLists& lists,
                                Outbound& out) {
  if (part_.workers().has_ended(worker)) {
    return base::error(Code::wrong_state, "worker {} has ended its part of query {}", worker,
                       id.to_string());
  }
  const std::vector<uint32_t> members = members_of(spec);
  for (const uint32_t member : members) {
    const uint32_t node = context_.cluster.node_of_worker(member);
    if (nodes_.contains(node)) continue;
    return base::error(Code::invalid_argument,
                       "stage {}: worker {} of {} takes no part in query {}", spec.stage, member,
                       context_.cluster.name(node), id.to_string());
  }
  const Status opened = part_.stages().open(worker, spec.stage, lists, members);
  if (!opened.ok()) {
    (void)fail_here(opened, out);
    return opened;
  }
  (void)fail_if(part_.stages().judge_all_that_await(worker), out);
  return failed() ? cause() : Status::Ok();
}

bool TrackedQuery::add_unopened(const UnopenedRows& rows, Outbound& out) {
  part_.add(rows);
  show();
  return part_.workers().has_ended(rows.worker) &&
         fail_if(part_.judge_unopened(rows.worker, nodes_), out);
}

void TrackedQuery::remove_unopened(uint32_t worker, uint32_t stage) {
  part_.remove_unopened(worker, stage);
  show();
}

// Without a show, which may need memory: the next tick shows it.
void TrackedQuery::remove_unopened(uint32_t worker, uint32_t stage, uint32_t sender) noexcept {
  part_.remove_unopened(worker, stage, sender);
}

void TrackedQuery::end(uint32_t worker, Outbound& out) {
  if (part_.end(worker)) show();
  (void)fail_if(part_.judge_unopened(worker, nodes_), out);
  (void)fail_if(part_.stages().judge_all_that_await(worker), out);
  if (outcome_known() || part_.has_voted() || !part_.workers().all_have_ended()) return;
  const uint32_t own = context_.cluster.own();
  if (nodes_.contains(own)) {  // else it only waits for the outcome
    const uint64_t balance = part_.stages().balance();
    if (coordinator_) {
      vote(own, balance, out);
    } else {
      out.send(id.issuer, ended_of(id, own, cause(), balance));
    }
  }
  part_.vote();  // what may find no memory came first
}

bool TrackedQuery::expire_unopened(Outbound& out) {
  const base::Nanoseconds timeout = context_.unopened_timeout_ns;
  bool alert = false;
  for (const UnopenedRows& rows : part_.unopened()) {
    if (!rows.is_due(context_.now, timeout)) continue;
    const uint32_t node = context_.cluster.node_of_worker(rows.sender);
    const Status cause = base::error(Code::query_unopened,
                                     "worker {} sent rows of stage {} to worker {}, which did not "
                                     "open it within query.unopened_timeout_ms = {}",
                                     rows.sender, rows.stage, rows.worker, timeout / 1'000'000)
                             .of_stage(rows.stage);
    if (nodes_.contains(node) || node == context_.cluster.own()) {
      alert |= fail_by_sender(node, cause, out);
    } else {  // rows of a node that takes no part only end its link
      out.end_link(node, base::error(Code::protocol_error, "{}; it takes no part in query {}",
                                     cause.message(), id.to_string()));
    }
  }
  part_.remove_due(context_.now, timeout);
  return alert;
}

bool TrackedQuery::tick(Outbound& out) {
  if (slot_) show();  // with what it has in overflow now
  bool alert = expire_unopened(out);
  if (const auto cause = part_.give_up_asking(context_.now, context_.unopened_timeout_ns))
    alert |= fail(*cause, false, out);
  return alert;
}

// --- the coordinator's part

void TrackedQuery::vote(uint32_t node, uint64_t balance, Outbound& out) {
  if (outcome_known()) return;
  coordinator_->vote(node, balance, context_.now);
  show();
  decide_if_all_voted(out);
}

void TrackedQuery::decide_if_all_voted(Outbound& out) {
  // Before this node has ended its own part it may still declare the participants.
  if (outcome_known() || !part_.workers().all_have_ended()) return;
  const Coordinator::Verdict verdict = coordinator_->judge(nodes_, failed());
  if (verdict == Coordinator::Verdict::wait) return;
  if (verdict == Coordinator::Verdict::unbalanced) {
    (void)fail(base::error(Code::stage_mismatch,
                           "query {}: not all workers have opened the same stages. One has ended "
                           "its part without opening a stage in which others name it, or with "
                           "other senders or receivers than they; rows may be missing",
                           id.to_string()),
               false, out);
  }
  Outbound told =
      coordinator_->announce(nodes_, cause(), context_.ended.low_water(context_.cluster.own()));
  set_outcome(cause());
  out.take(std::move(told));
  show();
}

void TrackedQuery::dismiss(uint32_t node, Outbound& out) {
  const uint32_t own = context_.cluster.own();
  if (!coordinator_ || node == own) return;
  out.send(node, outcome_of(id, own,
                            base::error(Code::query_ended, "{} takes no part in query {}",
                                        context_.cluster.name(node), id.to_string()),
                            0));
}

// --- the outcome

// The coordinator can only say that a query has ended well if this node has ended it, and well, or,
// having ended it well, has given up asking for its failure (native/DESIGN.md, the commit protocol of a query).
bool TrackedQuery::learn_outcome(const Status& outcome, Outbound& out) {
  if (outcome_known()) return false;
  const ClusterView& cluster = context_.cluster;
  const bool is_needed = !unverified_ && nodes_.contains(cluster.own()) && !part_.has_voted();
  if (outcome.ok() && ((failed() && !part_.gave_up_asking()) || is_needed)) {
    out.end_link(
        id.issuer,
        base::error(Code::protocol_error, "it says that query {} is done, which {} has {}",
                    id.to_string(), cluster.own_name(), failed() ? "failed" : "not ended"));
    return false;
  }
  if (!outcome.ok()) (void)fail(outcome, false, out);
  set_outcome(outcome);
  show();
  return true;
}

bool TrackedQuery::is_for_late_workers() const {
  return failed() && (unverified_ || part_.is_to_be_used());
}

// Nobody else can tell workers that were declared how it has ended: its issuer may still be to come, or another process has that
// number when they come.
bool TrackedQuery::is_over() const {
  if (context_.cluster.needs_declaration() && part_.is_to_be_used()) return false;
  return outcome_known() && !part_.is_in_use() && (!coordinator_ || coordinator_->is_confirmed());
}

// --- losses

bool TrackedQuery::lose_node(uint32_t node, const Status& why, Outbound& out) {
  if (outcome_known()) {
    if (coordinator_) coordinator_->confirm(node);
    return false;
  }
  if (node != id.issuer) {
    // This node has voted: all that is left is the coordinator's decision, and it knows about `node`, which may
    // well have that decision already and have left with it (native/DESIGN.md#hc-10).
    if (part_.has_voted() && !coordinator_) return false;
    // A query that only a peer's message made known here needs no node: which ones take part is not
    // known yet, and its first use here looks at which are lost.
    if (!part_.is_used() && !part_.is_declared()) return false;
  }
  const bool fails = fail_unlogged(why, !unverified_, out);
  if (node == id.issuer) {
    set_outcome(cause());  // nobody else will decide
  } else if (coordinator_) {
    decide_if_all_voted(out);
  }
  return fails && !unverified_;
}

void TrackedQuery::forget_former_life(uint32_t node) {
  nodes_.find_again(node);
  unverified_->forget_failure(node);
  part_.forget_former_life(node);
}

bool TrackedQuery::expires(Outbound& out) {
  if (!unverified_ || coordinator_ || !part_.unopened().empty()) return false;
  if (!unverified_->is_stale(context_.now, context_.unopened_timeout_ns)) return false;
  if (!failed() || outcome_known() || unverified_->is_asked()) return true;
  out.send(id.issuer, failure_of(id, context_.cluster.own(), cause()));
  unverified_->ask(context_.now);
  return false;
}

// --- what an observer sees

void TrackedQuery::show() {
  if (!hidden_ && context_.report.give_slot(slot_, unverified_.has_value()))
    context_.report.show(*slot_, state());
}

void TrackedQuery::hide() {
  hidden_ = true;  // whoever still has it must not show it again
  context_.report.hide(slot_);
}

counters::QueryState TrackedQuery::state() const {
  const auto pending = [](const std::vector<bool>& bits, uint64_t& count, uint64_t& first) {
    count = static_cast<uint64_t>(std::count(bits.begin(), bits.end(), true));
    first = static_cast<uint64_t>(std::find(bits.begin(), bits.end(), true) - bits.begin());
  };
  counters::QueryState state;
  state.id = id;
  state.life = outcome_known() ? counters::QueryLife::ended
               : failed()      ? counters::QueryLife::failed
                               : counters::QueryLife::running;
  state.since_ns = since_;
  state.overflow_bytes = usage.bytes.load(std::memory_order_relaxed);
  pending(part_.workers().pending(), state.workers_pending, state.first_worker_pending);
  state.first_worker_pending += part_.workers().first();
  if (coordinator_) pending(coordinator_->pending(), state.nodes_pending, state.first_node_pending);
  if (!part_.unopened().empty()) {
    state.unopened_worker = part_.unopened().begin()->worker;
    state.unopened_stage = part_.unopened().begin()->stage;
  }
  return state;
}

}  // namespace faro::shuffle
