// QueryTable: what peers say of queries, and what becomes of these when peers are lost, return or keep silent.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "shuffle/query/query.h"
#include "shuffle/query/query_messages.h"

namespace faro::shuffle {

// Of what is kept of each receiver that waits: more than the text of one takes.
constexpr size_t kAwaitingTextLimit = 512;
// Most of a query. Beyond it nobody is told what keeps it waiting, until it asks again.
constexpr size_t kAwaitedLimit = 16384;

template <typename Part>
void QueryTable::change(Part&& part) {
  Outbound out;
  bool alert = false;
  try {
    std::lock_guard lock(mutex_);
    alert = part(out);
  } catch (...) {
    {
      std::lock_guard lock(mutex_);
      unsent_.take(std::move(out));  // at the next tick
    }
    environment_.alert_workers();
    throw;
  }
  flush(out, alert);
}

void QueryTable::on_message(uint32_t from_node, const wire::QueryMessage& message) {
  using Kind = wire::QueryMessageKind;
  const QueryId id = to_id(message.query);
  const bool decides = id.issuer == shape_.node;
  change([&](Outbound& out) {
    bool alert = false;
    const Status told = status_of(message, node_count());
    switch (message.kind) {
      case Kind::fail:
      case Kind::ended: {
        const bool ended = message.kind == Kind::ended;
        if (ended && !decides) break;
        // Hearsay from others than the issuer would be nothing to act upon.
        const bool remembers = decides || from_node == id.issuer;
        const std::shared_ptr<Query> query =
            remembers ? hear_locked(id, from_node, out) : find_locked(id);
        if (query == nullptr) {
          // It has ended, or never began: whoever still asks is answered, or it would wait forever.
          if (decides) {
            out.send(from_node,
                     outcome_of(id, shape_.node,
                                Status(Code::query_ended,
                                       fmt::format("query {} has ended", id.to_string())),
                                0));
          }
          break;
        }
        const bool had_failed = query->failed();
        if (decides && !query->heard_from_ && !query->nodes_[from_node]) {
          dismiss_locked(*query, from_node, out);
          break;
        }
        if (!ended || !told.ok()) {
          const Status cause =
              told.ok() ? Status(Code::query_failed, "failed without a cause") : told;
          alert = fail_by_peer_locked(*query, from_node, cause, out);
        }
        // A query that has failed before anybody here has heard of it is over here: its issuer need not wait.
        if (!decides && query->heard_from_ && query->failed() && !query->outcome_known())
          out.send(id.issuer, ended_of(id, shape_.node, query->cause(), 0));
        if (ended) node_ended_locked(*query, from_node, message.number, out);
        // Perhaps it only asks.
        if (!ended && decides && had_failed)
          out.send(from_node, failure_of(id, shape_.node, query->cause()));
        alert |= ended && (query->outcome_known() || query->failed());
        break;
      }
      case Kind::stop:
        alert = stop_by_peer_locked(id, from_node,
                                    {message.first, static_cast<uint32_t>(message.second)}, out);
        break;
      case Kind::outcome:
        if (from_node != id.issuer) break;
        if (const std::shared_ptr<Query> query = find_locked(id))
          alert = outcome_by_issuer_locked(*query, told, out);
        if (id.incarnation == shape_.incarnations[id.issuer])
          ended_[id.issuer].raise(std::min(message.number, id.counter));
        out.send(from_node, message_of(Kind::confirm, id, shape_.node, 0));
        break;
      case Kind::confirm:
        if (!decides) break;
        if (const std::shared_ptr<Query> query = find_locked(id);
            query != nullptr && query->outcome_known())
          node_confirmed_locked(*query, from_node);
        break;
      case Kind::await:
        alert = await_by_peer_locked(id, from_node, message, out);
        break;
    }
    return alert;
  });
}

// Issuer: a node that takes no part has asked for the query to fail, and would remember that forever.
void QueryTable::dismiss_locked(const Query& query, uint32_t node, Outbound& out) {
  if (query.id.issuer != shape_.node || node == shape_.node) return;
  out.send(node, outcome_of(query.id, shape_.node,
                            Status(Code::query_ended,
                                   fmt::format("{} takes no part in query {}",
                                               shape_.node_names[node], query.id.to_string())),
                            0));
}

bool QueryTable::stop_by_peer_locked(const QueryId& id, uint32_t from_node, const Query::Stop& stop,
                                     Outbound& out) {
  if (!has_worker(from_node, stop.receiver)) return false;  // nobody stops for another's workers
  const std::shared_ptr<Query> query = hear_locked(id, from_node, out);
  if (query == nullptr || !query->nodes_[from_node]) return false;
  if (query->stops_.size() >= kQueryLimit || query->stops_.count(stop) != 0) return false;
  if (query->heard_from_ && !charge_locked(from_node, query.get(), out)) return false;
  query->stops_.insert(stop);
  return true;
}

// A receiver there waits for a worker of this node.
bool QueryTable::await_by_peer_locked(const QueryId& id, uint32_t from_node,
                                      const wire::QueryMessage& message, Outbound& out) {
  const auto sender = static_cast<uint32_t>(message.second);
  if (!has_worker(shape_.node, sender)) return false;
  const std::shared_ptr<Query> query = hear_locked(id, from_node, out);
  if (query == nullptr) {
    // It has come too late for a query that has ended here.
    if (!can_live_locked(id)) {
      out.send(from_node, failure_of(id, shape_.node,
                                     Status(Code::query_ended,
                                            fmt::format("query {} has ended on {}", id.to_string(),
                                                        shape_.node_names[shape_.node]))));
    }
    return false;
  }
  if (!query->nodes_[from_node] || query->failed() || query->outcome_known()) return false;
  const Query::Awaited awaited{sender, message.first, from_node};
  Query::Awaiting awaiting{message.number, message.text.substr(0, kAwaitingTextLimit)};
  if (!query->heard_from_) {
    if (const std::optional<Status> verdict = judge_awaited(*query, awaited, awaiting))
      return !verdict->ok() && fail_here_locked(*query, *verdict, out);
  }
  if (query->awaited_.count(awaited) != 0 || query->awaited_.size() >= kAwaitedLimit) return false;
  if (query->heard_from_ && !charge_locked(from_node, query.get(), out)) return false;
  query->awaited_.emplace(awaited, std::move(awaiting));
  return false;
}

// The issuer's answer is the outcome (DESIGN.md HC-10). That all is well it can only say of a query which
// this node has ended, and well, or, having ended it well, has given up asking for its failure.
bool QueryTable::outcome_by_issuer_locked(Query& query, const Status& outcome, Outbound& out) {
  if (query.outcome_known()) return false;
  const bool is_awaited = !query.heard_from_ && query.nodes_[shape_.node] && !query.ended_sent_;
  if (outcome.ok() && ((query.failed() && !query.gave_up_asking_) || is_awaited)) {
    out.offenders.emplace_back(
        query.id.issuer, Status(Code::protocol_error,
                                fmt::format("it says that query {} is done, which {} has {}",
                                            query.id.to_string(), shape_.node_names[shape_.node],
                                            query.failed() ? "failed" : "not ended")));
    return false;
  }
  if (!outcome.ok()) (void)fail_locked(query, outcome, false, out);
  settle_locked(query, outcome);
  show_locked(query);
  // Whoever uses it here, late, is told why it failed: as long as hearsay is kept; and where it was declared
  // since this node had answered for it, until its workers have ended it or the issuer is lost.
  const bool is_to_be_used = query.declared_ && !query.used_ && query.workers_pending_count_ > 0;
  const bool is_unused = query.heard_from_ || is_to_be_used;
  if (is_unused && query.failed()) return true;
  forget_if_over_locked(query);
  return true;
}

void QueryTable::on_peer_lost(uint32_t node, const Status& why) {
  const Status cause = why.of_node(node);
  change([&](Outbound& out) {
    lost_[node] = cause;
    std::vector<std::shared_ptr<Query>> concerned;
    std::vector<QueryId> failed;
    for (const auto& [id, query] : queries_) {
      query->lost_.emplace(node, cause);
      if (query->nodes_[node] || id.issuer == node) concerned.push_back(query);
    }
    for (const std::shared_ptr<Query>& query : concerned) {
      if (query->outcome_known()) {
        if (query->id.issuer == shape_.node) node_confirmed_locked(*query, node);
        if (query->id.issuer == node && !query->heard_from_) forget_if_over_locked(*query);
        continue;
      }
      // This node has ended its part: all that is left is the issuer's answer, and it knows about
      // `node`, which may well have that answer already and have left with it.
      if (query->ended_sent_ && query->id.issuer != node && query->id.issuer != shape_.node)
        continue;
      // What only a peer's message made known here needs nobody: who takes part is not known yet, and
      // its first use here looks at who is lost.
      if (!query->used_ && !query->declared_ && query->id.issuer != node) continue;
      if (fail_quietly_locked(*query, cause, !query->heard_from_, out) && !query->heard_from_)
        failed.push_back(query->id);
      if (query->id.issuer == node) {  // nobody else will answer
        settle_locked(*query, query->cause_);
        forget_if_over_locked(*query);
      } else if (query->id.issuer == shape_.node) {
        decide_if_all_ended_locked(*query, out);
      }
    }
    log_failures_locked(std::move(failed), cause);
    return true;
  });
}

// What peers only talk of may begin now. If it is older than the return, its issuer knows.
void QueryTable::forget_former_life_locked(Query& query, uint32_t node) {
  query.lost_.erase(node);
  query.early_failures_.erase(node);
  std::erase_if(query.stops_, [&](const Query::Stop& stop) {
    const bool its_own = has_worker(node, stop.receiver);
    heard_count_[node] -= its_own;
    return its_own;
  });
  std::erase_if(query.awaited_, [&](const auto& awaited) {
    const bool its_own = awaited.first.node == node;
    heard_count_[node] -= its_own;
    return its_own;
  });
}

void QueryTable::on_peer_joined(uint32_t node, uint64_t incarnation) {
  {
    std::lock_guard lock(mutex_);
    shape_.incarnations[node] = incarnation;
    lost_[node] = Status::Ok();
    joined_at_[node] = counter_;
    if (!base::planted(base::Plant::kept_marks)) ended_.erase(node);
    for (const auto& [id, query] : queries_) {
      if (query->heard_from_ && id.issuer != shape_.node) forget_former_life_locked(*query, node);
    }
  }
}

void QueryTable::on_tick(base::Nanoseconds now) {
  change([&](Outbound& out) {
    bool alert = false;
    ticked_at_ = now;
    out.take(std::move(unsent_));
    if (some_must_fail_.exchange(false, std::memory_order_acquire)) {
      for (const auto& [id, query] : queries_) {
        if (query->must_fail_.exchange(false, std::memory_order_relaxed))
          alert |= fail_here_locked(*query, no_memory_, out);
      }
    }
    std::vector<std::shared_ptr<Query>> expired;
    std::vector<std::shared_ptr<Query>> unbalanced;
    for (const auto& [id, query] : queries_) {
      if (query->shown_in_) show_locked(*query);  // with what it has in overflow now
      alert |= expire_unopened_locked(*query, now, out);
      alert |= expire_question_locked(*query, now, out);
      if (expire_hearsay_locked(*query, now, out)) expired.push_back(query);
      if (query->ticks_to_balance_ && !query->outcome_known()) {
        --*query->ticks_to_balance_;
        unbalanced.push_back(query);
      }
    }
    for (const std::shared_ptr<Query>& query : unbalanced) {
      decide_if_all_ended_locked(*query, out);
      alert |= query->outcome_known();
    }
    for (const std::shared_ptr<Query>& query : expired) {
      forget_hearsay_locked(*query);
    }
    alert |= !expired.empty();
    return alert;
  });
}

// Rows that nobody opens fail their query; those of a peer that takes no part in it only end its link.
bool QueryTable::expire_unopened_locked(Query& query, base::Nanoseconds now, Outbound& out) {
  const auto is_due = [&](const Query::Unopened& u) {
    return now >= u.since && now - u.since >= unopened_timeout_ns_;
  };
  bool alert = false;
  for (const Query::Unopened& u : query.unopened_) {
    if (!is_due(u)) continue;
    const uint32_t node = node_of_worker(u.sender);
    const Status cause =
        Status(Code::query_unopened,
               fmt::format(
                   "worker {} sent rows of stage {} to worker {}, which did not open it within "
                   "query.unopened_timeout_ms = {}",
                   u.sender, u.stage, u.worker, unopened_timeout_ns_ / 1'000'000))
            .of_stage(u.stage);
    if (query.nodes_[node] || node == shape_.node) {
      alert |= fail_by_sender_locked(query, node, cause, out);
    } else {
      out.offenders.emplace_back(
          node, Status(Code::protocol_error, fmt::format("{}; it takes no part in query {}",
                                                         cause.message(), query.id.to_string())));
    }
  }
  std::erase_if(query.unopened_, is_due);
  return alert;
}

// An issuer that neither fails a query nor says its outcome keeps nobody waiting who wants it to fail.
bool QueryTable::expire_question_locked(Query& query, base::Nanoseconds now, Outbound& out) {
  if (query.heard_from_ || !query.asked_at_ || now - *query.asked_at_ < unopened_timeout_ns_)
    return false;
  query.asked_at_.reset();
  query.gave_up_asking_ = true;
  return fail_locked(query, query.asked_cause_, false, out);
}

// Whether to forget what peers have said of a query of another issuer. A failure is kept while the issuer
// says that it is one.
bool QueryTable::expire_hearsay_locked(Query& query, base::Nanoseconds now, Outbound& out) {
  if (!query.heard_from_ || query.id.issuer == shape_.node || !query.unopened_.empty())
    return false;
  if (now < query.heard_at_ || now - query.heard_at_ < unopened_timeout_ns_) return false;
  if (!query.failed() || query.outcome_known() || query.asked_at_) return true;
  query.asked_at_ = query.heard_at_ = now;
  out.send(query.id.issuer, failure_of(query.id, shape_.node, query.cause_));
  return false;
}

}  // namespace faro::shuffle
