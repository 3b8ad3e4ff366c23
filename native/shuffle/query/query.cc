#include "shuffle/query/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/each.h"
#include "base/log.h"
#include "faro/hash.h"
#include "shuffle/query/query_messages.h"

namespace faro::shuffle {
wire::QueryKey to_key(const QueryId& id) { return {id.counter, id.incarnation, id.issuer, 0}; }
QueryId to_id(const wire::QueryKey& key) { return {key.counter, key.incarnation, key.issuer, 0}; }

QueryTable::QueryTable(Shape shape, QueryEnvironment& environment,
                       base::Nanoseconds unopened_timeout_ns)
    : shape_(std::move(shape)),
      environment_(environment),
      unopened_timeout_ns_(unopened_timeout_ns),
      lost_(shape_.incarnations.size()),
      joined_at_(shape_.incarnations.size()),
      heard_count_(shape_.incarnations.size()),
      heard_(shape_.incarnations.size()),
      no_memory_(Code::overflow_exhausted,
                 fmt::format("the process of {} has no memory left that it could use for rows",
                             shape_.node_names[shape_.node])) {
  for (uint32_t n = 0; n < node_count(); ++n) {
    if (shape_.incarnations[n] != 0) continue;
    lost_[n] = Status(Code::peer_lost, fmt::format("{} is missing: it has not come back since this "
                                                   "node opened its session",
                                                   shape_.node_names[n]))
                   .of_node(n);
  }
}

// So long the issuer waits for the cause when the balances of the participants do not add up.
constexpr int kTicksToBalance = 2;

// A failure that was met on the way, made one that can end a query: what refuses a call, or makes a whole process
// useless, does neither when it ends a query.
Status cause_of(const Status& met) {
  const Category category = met.category();
  if (category != Category::operation && category != Category::process) return met;
  Status cause(Code::query_failed, met.to_string());
  if (met.node()) cause = cause.of_node(*met.node());
  return met.stage() ? cause.of_stage(*met.stage()) : cause;
}

// Queries that one line of the log names.
constexpr size_t kNamedInLog = 8;

// Why a query cannot be used any more.
Status QueryTable::why_over(const QueryId& id) const {
  if (id.issuer < node_count() && !lost_[id.issuer].ok()) return lost_[id.issuer];
  if (id.issuer < node_count() && id.incarnation != shape_.incarnations[id.issuer]) {
    return Status(Code::peer_lost, fmt::format("query {} was begun by another process than the one "
                                               "that is {} now: it has ended with it",
                                               id.to_string(), shape_.node_names[id.issuer]))
        .of_node(id.issuer);
  }
  const bool never_begun = id.issuer == shape_.node && id.counter > counter_;
  return Status(Code::query_ended,
                fmt::format("query {} {}", id.to_string(),
                            never_begun ? "was never begun by this node" : "has ended"));
}

void QueryTable::Ended::add(uint64_t counter) {
  if (counter <= low_water) return;
  above.insert(counter);
  while (!above.empty() && *above.begin() == low_water + 1) {
    ++low_water;
    above.erase(above.begin());
  }
}

void QueryTable::Ended::raise(uint64_t counter) {
  if (counter <= low_water) return;
  low_water = counter;
  above.erase(above.begin(), above.upper_bound(counter));
  while (!above.empty() && *above.begin() == low_water + 1) {
    ++low_water;
    above.erase(above.begin());
  }
}

void QueryTable::show_in(counters::CounterFile& file, base::Nanoseconds now) {
  file_ = &file;
  ticked_at_ = now;
  for (uint32_t slot = counters::kQuerySlots; slot-- > 0;) free_slots_.push_back(slot);
}

// The state of a query has changed: shows it, if there is room for it.
void QueryTable::show_locked(Query& query) {
  if (file_ == nullptr || query.forgotten_) return;
  counters::set(file_->node().queries_running, queries_.size());
  counters::set(file_->node().queries_failed, failed_count());
  if (!query.shown_in_) {
    // Hearsay leaves room for what this node does itself.
    if (free_slots_.size() <= (query.heard_from_ ? counters::kQuerySlots / 2 : 0)) return;
    query.shown_in_ = free_slots_.back();
    free_slots_.pop_back();
  }
  const auto pending = [](const std::vector<bool>& bits, uint64_t& count, uint64_t& first) {
    count = static_cast<uint64_t>(std::count(bits.begin(), bits.end(), true));
    first = static_cast<uint64_t>(std::find(bits.begin(), bits.end(), true) - bits.begin());
  };
  counters::QueryState state;
  state.id = query.id;
  state.life = query.outcome_known() ? counters::QueryLife::ended
               : query.failed()      ? counters::QueryLife::failed
                                     : counters::QueryLife::running;
  state.since_ns = query.since_;
  state.overflow_bytes = query.usage.bytes.load(std::memory_order_relaxed);
  pending(query.workers_pending_, state.workers_pending, state.first_worker_pending);
  state.first_worker_pending += shape_.first_worker[shape_.node];
  if (query.id.issuer == shape_.node)
    pending(query.nodes_pending_, state.nodes_pending, state.first_node_pending);
  if (!query.unopened_.empty()) {
    state.unopened_worker = query.unopened_.front().worker;
    state.unopened_stage = query.unopened_.front().stage;
  }
  file_->query(*query.shown_in_).store(state);
}

void QueryTable::hide_locked(Query& query) {
  query.forgotten_ = true;  // whoever still has it must not show it again
  if (file_ == nullptr) return;
  counters::set(file_->node().queries_running, queries_.size());
  if (!query.shown_in_) return;
  file_->query(*query.shown_in_).store({});
  free_slots_.push_back(*query.shown_in_);
}

QueryId QueryTable::begin() {
  std::lock_guard lock(mutex_);
  return {++counter_, shape_.incarnations[shape_.node], shape_.node, 0};
}

bool QueryTable::has_worker(uint32_t node, uint32_t worker) const {
  return worker >= shape_.first_worker[node] &&
         worker - shape_.first_worker[node] < shape_.worker_count[node];
}

uint32_t QueryTable::node_of_worker(uint32_t worker) const {
  for (uint32_t n = node_count(); n-- > 0;) {
    if (worker >= shape_.first_worker[n]) return n;
  }
  return 0;
}

void QueryTable::set_participants(Query& query, const std::vector<uint32_t>& workers) {
  const uint32_t own = shape_.node;
  query.workers_pending_.assign(shape_.worker_count[own], workers.empty());
  query.nodes_.assign(node_count(), workers.empty());
  for (uint32_t worker : workers) {
    const uint32_t n = node_of_worker(worker);
    query.nodes_[n] = true;
    if (n == own) query.workers_pending_[worker - shape_.first_worker[own]] = true;
  }
  query.workers_ = query.workers_pending_;
  query.workers_pending_count_ = static_cast<uint32_t>(
      std::count(query.workers_pending_.begin(), query.workers_pending_.end(), true));
  query.nodes_pending_ = query.nodes_;
}

std::shared_ptr<Query> QueryTable::find_locked(const QueryId& id) const {
  const auto it = queries_.find(id);
  return it == queries_.end() ? nullptr : it->second;
}

bool QueryTable::can_live_locked(const QueryId& id) {
  if (id.counter == 0 || id.issuer >= node_count()) return false;
  // Another incarnation of the issuer is another life: all its queries ended with it.
  if (id.incarnation != shape_.incarnations[id.issuer]) return false;
  if (id.issuer == shape_.node && id.counter > counter_) return false;  // never begun
  if (ended_[id.issuer].contains(id.counter)) return false;
  return lost_[id.issuer].ok();  // it ended with its issuer: nobody else would end it
}

std::shared_ptr<Query> QueryTable::make_locked(const QueryId& id) {
  auto query = std::make_shared<Query>(id);
  set_participants(*query, {});
  query->since_ = ticked_at_;
  note_lost_locked(*query);
  queries_.emplace(id, query);
  return query;
}

// Of nodes that it cannot contain: they are gone, or another process than when it was begun.
void QueryTable::note_lost_locked(Query& query) {
  for (uint32_t n = 0; n < node_count(); ++n) {
    if (!lost_[n].ok()) {
      query.lost_.emplace(n, lost_[n]);
    } else if (query.id.issuer == shape_.node && query.id.counter <= joined_at_[n]) {
      query.lost_.emplace(
          n,
          Status(Code::peer_lost, fmt::format("query {} began before {} was lost, or had come back",
                                              query.id.to_string(), shape_.node_names[n]))
              .of_node(n));
    }
  }
}

void QueryTable::fail_if_lost_locked(Query& query, Outbound& out) {
  for (const auto& [n, cause] : query.lost_) {
    if (query.nodes_[n]) (void)fail_here_locked(query, cause, out);
  }
}

// --- what this node does itself, and hearsay

std::shared_ptr<Query> QueryTable::find_or_make_own_locked(const QueryId& id) {
  if (std::shared_ptr<Query> known = find_locked(id)) return known;
  if (!can_live_locked(id) || own_count_ >= kQueryLimit) return nullptr;
  ++own_count_;
  std::shared_ptr<Query> query = make_locked(id);
  show_locked(*query);
  return query;
}

// This node has to do with it from now on. Who takes part is known: what peers said before is judged.
void QueryTable::make_own_locked(Query& query, Outbound& out) {
  if (!query.heard_from_) return;
  discharge_locked(query);
  query.heard_from_.reset();
  query.asked_at_.reset();
  ++own_count_;
  if (query.failed()) {
    failed_count_.fetch_add(1, std::memory_order_relaxed);
    log_failures_locked({query.id}, query.cause_);
  }
  for (const auto& [node, cause] : std::exchange(query.early_failures_, {})) {
    if (query.nodes_[node]) {
      (void)fail_here_locked(query, cause, out);
    } else {
      dismiss_locked(query, node, out);
    }
  }
  show_locked(query);
}

// nullptr if a query is nothing that this peer may speak of.
std::shared_ptr<Query> QueryTable::hear_locked(const QueryId& id, uint32_t from_node,
                                               Outbound& out) {
  std::shared_ptr<Query> query = find_locked(id);
  if (query == nullptr) {
    if (!can_live_locked(id) || !charge_locked(from_node, nullptr, out)) return nullptr;
    std::list<Query*> place(1);  // what may find no memory comes first
    query = make_locked(id);
    query->heard_from_ = from_node;
    query->place_ = place.begin();
    place.front() = query.get();
    heard_[from_node].splice(heard_[from_node].end(), place);
    show_locked(*query);
  }
  query->heard_at_ = ticked_at_;
  return query;
}

// Makes room for one thing more that a peer speaks of, other than in `keep`. false: all that is kept of it has rows.
bool QueryTable::charge_locked(uint32_t node, const Query* keep, Outbound& out) {
  auto oldest = heard_[node].begin();
  while (heard_count_[node] >= kHearsayLimit && oldest != heard_[node].end()) {
    Query& query = **oldest++;
    // Rows wait for it at a worker, which lets only a few shuffles of a node wait.
    if (&query == keep || !query.unopened_.empty()) continue;
    drop_hearsay_locked(query, out);
  }
  if (heard_count_[node] >= kHearsayLimit) return false;
  ++heard_count_[node];
  return true;
}

// Forgets what peers have said of a query. What the issuer knows of it, it says again when this node takes part;
// of this node's own it is an end that nobody has waited for: who comes later is told.
void QueryTable::drop_hearsay_locked(Query& query, Outbound& out) {
  if (query.id.issuer == shape_.node) {
    const Status cause(
        Code::query_ended,
        fmt::format("query {} was not used by {}, and was forgotten for {} later ones",
                    query.id.to_string(), shape_.node_names[shape_.node], kHearsayLimit));
    settle_locked(query, cause);
    for (uint32_t n = 0; n < node_count(); ++n) {
      const bool has_ended = query.nodes_[n] && !query.nodes_pending_[n];
      if (!has_ended || n == shape_.node || !lost_[n].ok()) continue;
      out.send(n, outcome_of(query.id, shape_.node, cause, ended_[shape_.node].low_water));
    }
    ended_[shape_.node].add(query.id.counter);
    forget_locked(query);
  } else {
    forget_hearsay_locked(query);
  }
}

// Of another issuer's. If that has said how it ended, whoever comes later is told that it has.
void QueryTable::forget_hearsay_locked(Query& query) {
  Ended& ended = ended_[query.id.issuer];
  if (!query.outcome_known()) {
    settle_locked(query, query.cause_);
  } else if (query.id.incarnation == shape_.incarnations[query.id.issuer] &&
             ended.above.size() < kHeardEndsLimit) {
    ended.add(query.id.counter);
  }
  forget_locked(query);
}

void QueryTable::discharge_locked(Query& query) {
  --heard_count_[*query.heard_from_];
  heard_[*query.heard_from_].erase(query.place_);
  for (const Query::Stop& stop : query.stops_) {
    const uint32_t node = node_of_worker(stop.receiver);
    if (node != shape_.node) --heard_count_[node];
  }
  for (const auto& [awaited, awaiting] : query.awaited_) --heard_count_[awaited.node];
}

std::shared_ptr<Query> QueryTable::find(const QueryId& id) {
  std::lock_guard lock(mutex_);
  return find_locked(id);
}

std::shared_ptr<Query> QueryTable::hear(const QueryId& id, uint32_t from_node) {
  Outbound out;
  std::shared_ptr<Query> query;
  {
    std::lock_guard lock(mutex_);
    const bool is_new = can_live_locked(id) && find_locked(id) == nullptr;
    query = hear_locked(id, from_node, out);
    if (query == nullptr && is_new && from_node != shape_.node) {
      // No room for it: its rows are thrown away, so it must not end well. Who takes part is told, and tells.
      out.send(
          from_node,
          failure_of(id, shape_.node,
                     Status(Code::query_unopened,
                            fmt::format(
                                "{} keeps the rows of {} queries that it does not know, all it can",
                                shape_.node_names[shape_.node], kHearsayLimit))));
    }
    if (query != nullptr && !query->nodes_[from_node]) {
      out.offenders.emplace_back(
          from_node, Status(Code::protocol_error,
                            fmt::format("it opens a shuffle of query {}, in which it takes no part",
                                        id.to_string())));
      query = nullptr;
    }
  }
  flush(out, false);
  return query;
}

bool QueryTable::takes_part(const Query& query, uint32_t node) const {
  std::lock_guard lock(mutex_);
  return query.nodes_[node];
}

Status QueryTable::declare(const QueryId& id, const std::vector<uint32_t>& workers) {
  Outbound out;
  FARO_RETURN_IF_ERROR(declare_locked(id, workers, out));
  flush(out, !out.empty());
  return Status::Ok();
}

Status QueryTable::declare_locked(const QueryId& id, const std::vector<uint32_t>& workers,
                                  Outbound& out) {
  std::lock_guard lock(mutex_);
  const uint32_t worker_count = shape_.first_worker.back() + shape_.worker_count.back();
  for (uint32_t worker : workers) {
    if (worker >= worker_count) {
      return Status(Code::invalid_argument,
                    fmt::format("query {}: worker {} does not exist (0 … {})", id.to_string(),
                                worker, worker_count - 1));
    }
  }
  const std::shared_ptr<Query> query = find_or_make_own_locked(id);
  if (query == nullptr) return why_over(id).of_query(id);
  // It has failed, and its issuer, which would end it here with its own end, is gone.
  if (query->heard_from_ && query->outcome_known() && !lost_[id.issuer].ok())
    return query->outcome();
  if (query->declared_ || query->used_) {
    return Status(Code::wrong_state,
                  fmt::format("query {} is in use already; declare it before", id.to_string()));
  }
  query->declared_ = true;
  // What peers have already said of it counts: ENDED of nodes that were faster.
  std::vector<bool> ended_early(node_count());
  for (uint32_t n = 0; n < node_count(); ++n)
    ended_early[n] = query->nodes_[n] && !query->nodes_pending_[n];
  set_participants(*query, workers);
  for (uint32_t n = 0; n < node_count(); ++n) {
    if (ended_early[n]) query->nodes_pending_[n] = false;
  }
  make_own_locked(*query, out);
  show_locked(*query);
  if (id.issuer == shape_.node) {
    fail_if_lost_locked(*query, out);
    // An issuer that takes no part may have been waited for.
    decide_if_all_ended_locked(*query, out);
  }
  return Status::Ok();
}

Result<std::shared_ptr<Query>> QueryTable::use(const QueryId& id) {
  Outbound out;
  std::shared_ptr<Query> query;
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok()) return closed_;
    query = find_or_make_own_locked(id);
    if (query == nullptr) {
      if (own_count_ >= kQueryLimit) {
        return Status(Code::limit_exceeded,
                      fmt::format("{} queries are running, the limit", kQueryLimit));
      }
      return why_over(id).of_query(id);
    }
    query->used_ = true;
    make_own_locked(*query, out);
    fail_if_lost_locked(*query, out);
  }
  flush(out, !out.empty());
  return query;
}

// Of each query that fails, with its first cause here, which names the peer if it was one; and one line for one cause.
void QueryTable::log_failures_locked(std::vector<QueryId> ids, const Status& cause) const {
  if (ids.empty()) return;
  std::sort(ids.begin(), ids.end(), [](const QueryId& a, const QueryId& b) {
    return std::tie(a.issuer, a.counter) < std::tie(b.issuer, b.counter);
  });
  std::string named;
  for (size_t i = 0; i < std::min(ids.size(), kNamedInLog); ++i)
    named += (i == 0 ? "" : ", ") + ids[i].to_string();
  if (ids.size() > kNamedInLog) named += fmt::format(" and {} more", ids.size() - kNamedInLog);
  base::log(LogLevel::warning, "{}: {} {} failed: {}", shape_.node_names[shape_.node],
            ids.size() == 1 ? "query" : "queries", named, cause.to_string());
}

bool QueryTable::fail_locked(Query& query, const Status& cause, bool tell_others, Outbound& out) {
  const bool fails = fail_quietly_locked(query, cause, tell_others, out);
  try {
    if (fails && !query.heard_from_) log_failures_locked({query.id}, cause);
  } catch (const std::bad_alloc&) {
    // It has failed all the same.
  }
  return fails;
}

bool QueryTable::fail_quietly_locked(Query& query, const Status& met, bool tell_others,
                                     Outbound& out) {
  if (query.failed() || query.outcome_known()) return false;
  // What may find no memory comes first: either it fails and all are told, or nothing happens.
  Outbound told;
  const Status cause = cause_of(met).of_query(query.id).of_node(shape_.node);
  if (tell_others) {
    for (uint32_t n = 0; n < node_count(); ++n) {
      const bool concerned = query.nodes_[n] || n == query.id.issuer;
      if (!concerned || n == shape_.node || query.lost_.count(n) != 0) continue;
      told.send(n, failure_of(query.id, shape_.node, cause));
    }
  }
  query.cause_ = cause;
  query.failed_.store(true, std::memory_order_release);
  if (!query.heard_from_) failed_count_.fetch_add(1, std::memory_order_relaxed);
  show_locked(query);
  out.take(std::move(told));
  return true;
}

// A failure that was found here.
bool QueryTable::fail_here_locked(Query& query, const Status& cause_here, Outbound& out) {
  // What went wrong for want of memory may be why this goes wrong.
  const Status& cause = query.must_fail_.load(std::memory_order_relaxed) ? no_memory_ : cause_here;
  if (!query.ended_sent_ || query.id.issuer == shape_.node)
    return fail_locked(query, cause, true, out);
  // The issuer may have decided already.
  if (query.failed() || query.outcome_known() || query.asked_at_) return false;
  const Status asked = cause_of(cause).of_query(query.id).of_node(shape_.node);
  out.send(query.id.issuer, failure_of(query.id, shape_.node, asked));
  query.asked_at_ = ticked_at_;
  query.asked_cause_ = asked;
  return false;
}

// A failure that a peer tells. Only who takes part is believed, and while it is not known who does, only
// the issuer, which passes on what it believes.
bool QueryTable::fail_by_peer_locked(Query& query, uint32_t from_node, const Status& cause,
                                     Outbound& out) {
  if (from_node == query.id.issuer) {
    query.asked_at_.reset();
    return fail_locked(query, cause, false, out);
  }
  const bool decides = query.id.issuer == shape_.node;
  if (query.heard_from_) {
    if (decides) query.early_failures_.emplace(from_node, cause);
    return false;
  }
  if (!query.nodes_[from_node] || (query.ended_sent_ && !decides)) return false;
  return fail_locked(query, cause, decides, out);
}

// A failure that is the fault of what a peer sent. Of hearsay it is kept until it is known whether that
// peer takes part; a peer that does ends the query itself when it is told.
bool QueryTable::fail_by_sender_locked(Query& query, uint32_t node, const Status& cause,
                                       Outbound& out) {
  if (!query.heard_from_) return fail_here_locked(query, cause, out);
  query.early_failures_.emplace(node, cause);
  out.send(node, failure_of(query.id, shape_.node, cause));
  return false;
}

void QueryTable::flush(Outbound& out, bool alert) {
  while (!out.messages.empty()) {
    try {
      environment_.send(out.messages.front().first, out.messages.front().second);
      out.messages.pop_front();
    } catch (const std::bad_alloc&) {
      std::lock_guard lock(mutex_);
      unsent_.take(std::move(out));  // at the next tick
      break;
    }
  }
  for (const auto& [node, cause] : out.offenders) {
    // What this node's own workers do wrong they are told themselves.
    if (node != shape_.node) environment_.fail_peer(node, cause);
  }
  if (alert) environment_.alert_workers();
}

void QueryTable::fail(Query& query, const Status& cause) {
  Outbound out;
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = fail_here_locked(query, cause, out);
  }
  flush(out, first);
}

void QueryTable::fail_for_memory(Query& query) noexcept {
  try {
    fail(query, no_memory_);
  } catch (const std::bad_alloc&) {
    query.must_fail_.store(true, std::memory_order_relaxed);
    some_must_fail_.store(true, std::memory_order_release);
  }
}

void QueryTable::fail_by_sender(Query& query, uint32_t node, const Status& cause) {
  Outbound out;
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = fail_by_sender_locked(query, node, cause, out);
  }
  flush(out, first);
}

void QueryTable::lose_rows(Query& query, uint32_t node) {
  Outbound out;
  bool first;
  {
    std::lock_guard lock(mutex_);
    const auto lost = query.lost_.find(node);
    first = fail_here_locked(
        query,
        lost != query.lost_.end()
            ? lost->second
            : Status(Code::peer_lost, fmt::format("{} was lost", shape_.node_names[node]))
                  .of_node(node),
        out);
  }
  flush(out, first);
}

void QueryTable::cancel(const QueryId& id, const Status& cause) {
  Outbound out;
  bool first;
  {
    std::lock_guard lock(mutex_);
    const std::shared_ptr<Query> query = find_or_make_own_locked(id);
    if (query == nullptr || query->outcome_known()) return;
    make_own_locked(*query, out);
    first = fail_here_locked(*query, cause, out);
  }
  flush(out, first);
}

void QueryTable::stop(Query& query, uint32_t stage, uint32_t receiver,
                      std::span<const uint32_t> senders) {
  std::vector<bool> nodes(node_count());
  for (uint32_t sender : senders) nodes[node_of_worker(sender)] = true;
  Outbound out;
  {
    std::lock_guard lock(mutex_);
    for (uint32_t n = 0; n < node_count(); ++n) {
      if (!nodes[n] || query.lost_.count(n) != 0) continue;
      if (n == shape_.node) {
        query.stops_.insert({stage, receiver});
      } else {
        out.send(n, message_of(wire::QueryMessageKind::stop, query.id, stage,
                               static_cast<int32_t>(receiver)));
      }
    }
  }
  flush(out, true);
}

std::vector<uint32_t> QueryTable::stops(Query& query, uint32_t stage) {
  std::vector<uint32_t> receivers;
  std::lock_guard lock(mutex_);
  for (auto s = query.stops_.lower_bound({stage, 0}); s != query.stops_.end() && s->stage == stage;
       ++s)
    receivers.push_back(s->receiver);
  return receivers;
}

void QueryTable::add_unopened(Query& query, uint32_t worker, uint32_t stage, uint32_t sender,
                              base::Nanoseconds now) {
  Outbound out;
  bool fails = false;
  {
    std::lock_guard lock(mutex_);
    query.unopened_.push_back({worker, stage, sender, now});
    show_locked(query);
    if (has_ended_locked(query, worker)) fails = fail_what_is_unopened_locked(query, worker, out);
  }
  flush(out, fails);
}

void QueryTable::remove_unopened(Query& query, uint32_t worker, uint32_t stage) {
  std::lock_guard lock(mutex_);
  std::erase_if(query.unopened_,
                [&](const Query::Unopened& u) { return u.worker == worker && u.stage == stage; });
  show_locked(query);
}

// --- stages

bool QueryTable::has_ended_locked(const Query& query, uint32_t worker) const {
  const uint32_t local = worker - shape_.first_worker[shape_.node];
  return query.workers_[local] && !query.workers_pending_[local];
}

Status QueryTable::open_stage(Query& query, uint32_t worker, const ShuffleSpec& spec,
                              const StageLists& lists) {
  Outbound out;
  Status status;
  {
    std::lock_guard lock(mutex_);
    status = check_stage_locked(query, worker, spec, lists, out);
  }
  flush(out, query.failed());
  return status;
}

Status QueryTable::check_stage_locked(Query& query, uint32_t worker, const ShuffleSpec& spec,
                                      const StageLists& lists, Outbound& out) {
  if (has_ended_locked(query, worker)) {
    return Status(Code::wrong_state, fmt::format("worker {} has ended its part of query {}", worker,
                                                 query.id.to_string()));
  }
  const std::vector<uint32_t> members = members_of(spec);
  for (const uint32_t member : members) {
    const uint32_t node = node_of_worker(member);
    if (query.nodes_[node]) continue;
    return Status(Code::invalid_argument,
                  fmt::format("stage {}: worker {} of {} takes no part in query {}", spec.stage,
                              member, shape_.node_names[node], query.id.to_string()));
  }
  auto known = query.stages_.find(spec.stage);
  if (known == query.stages_.end()) {
    const std::vector<bool> none(shape_.worker_count[shape_.node]);
    known = query.stages_.emplace(spec.stage, Query::Stage{lists, worker, none}).first;
  }
  Query::Stage& stage = known->second;
  if (stage.lists.digest != lists.digest) {
    const Status cause =
        Status(Code::stage_mismatch,
               fmt::format("stage {} of query {}: worker {} opened it with {}, worker {} with {}",
                           spec.stage, query.id.to_string(), stage.opened_first, stage.lists.text,
                           worker, lists.text))
            .of_stage(spec.stage);
    (void)fail_here_locked(query, cause, out);
    return cause;
  }
  stage.opened[worker - shape_.first_worker[shape_.node]] = true;
  if (std::binary_search(members.begin(), members.end(), worker)) {
    const uint64_t share = FinalizerHash()(lists.digest + spec.stage) | 1;
    query.balance_ += share;
    if (worker == members.front()) query.balance_ -= share * members.size();
  }
  (void)judge_awaited_of_locked(query, worker, out);
  return query.failed() ? query.cause_ : Status::Ok();
}

bool QueryTable::is_balanced(const Query& query) const {
  uint64_t sum = 0;
  for (const auto& [node, balance] : query.balances_) sum += query.nodes_[node] ? balance : 0;
  return sum == 0;
}

void QueryTable::await(Query& query, uint32_t worker, uint32_t stage,
                       std::span<const uint32_t> senders, const StageLists& lists) {
  Outbound out;
  {
    std::lock_guard lock(mutex_);
    if (query.failed() || query.outcome_known()) return;
    for (const uint32_t sender : senders) {
      wire::QueryMessage message =
          message_of(wire::QueryMessageKind::await, query.id, stage, static_cast<int32_t>(sender),
                     fmt::format("worker {} opened stage {} with {}", worker, stage, lists.text));
      message.number = lists.digest;
      out.send(node_of_worker(sender), std::move(message));
    }
  }
  flush(out, false);
}

std::optional<Status> QueryTable::judge_awaited(const Query& query, const Query::Awaited& awaited,
                                                const Query::Awaiting& awaiting) const {
  const uint32_t local = awaited.sender - shape_.first_worker[shape_.node];
  const std::string who =
      fmt::format("worker {} of {}", awaited.sender, shape_.node_names[shape_.node]);
  const auto stage = query.stages_.find(awaited.stage);
  if (stage != query.stages_.end() && stage->second.opened[local]) {
    if (stage->second.lists.digest == awaiting.lists) return Status::Ok();
    return Status(Code::stage_mismatch,
                  fmt::format("query {}: {} opened stage {} with {}, but {}", query.id.to_string(),
                              who, awaited.stage, stage->second.lists.text, awaiting.text))
        .of_stage(awaited.stage);
  }
  if (query.workers_pending_[local]) return std::nullopt;
  return Status(Code::query_unopened,
                fmt::format("{} {} query {}{}, but {}", who,
                            query.workers_[local] ? "ended its part of" : "takes no part in",
                            query.id.to_string(),
                            query.workers_[local]
                                ? fmt::format(" without opening stage {}", awaited.stage)
                                : "",
                            awaiting.text))
      .of_stage(awaited.stage);
}

// A local worker has opened a stage, or ended: what is known now of those who wait for it.
bool QueryTable::judge_awaited_of_locked(Query& query, uint32_t worker, Outbound& out) {
  bool fails = false;
  for (auto at = query.awaited_.lower_bound({worker, 0, 0});
       at != query.awaited_.end() && at->first.sender == worker;) {
    const std::optional<Status> verdict = judge_awaited(query, at->first, at->second);
    if (verdict && !verdict->ok()) fails |= fail_here_locked(query, *verdict, out);
    at = verdict ? query.awaited_.erase(at) : std::next(at);
  }
  return fails;
}

// A local worker has ended its part: what was sent to it, it does not open any more.
bool QueryTable::fail_what_is_unopened_locked(Query& query, uint32_t worker, Outbound& out) {
  bool fails = false;
  for (const Query::Unopened& u : query.unopened_) {
    if (u.worker != worker || !query.nodes_[node_of_worker(u.sender)]) continue;
    fails |= fail_here_locked(
        query,
        Status(Code::query_unopened,
               fmt::format(
                   "worker {} of {} ended its part of query {} without opening stage {}, in which "
                   "worker {} sends to it",
                   worker, shape_.node_names[shape_.node], query.id.to_string(), u.stage, u.sender))
            .of_stage(u.stage),
        out);
  }
  return fails;
}

void QueryTable::end(Query& query, uint32_t worker) {
  Outbound out;
  {
    std::lock_guard lock(mutex_);
    end_locked(query, worker, out);
  }
  flush(out, true);
}

void QueryTable::end_locked(Query& query, uint32_t worker, Outbound& out) {
  const uint32_t local = worker - shape_.first_worker[shape_.node];
  if (query.workers_pending_[local]) {
    query.workers_pending_[local] = false;
    --query.workers_pending_count_;
    show_locked(query);
  }
  (void)fail_what_is_unopened_locked(query, worker, out);
  (void)judge_awaited_of_locked(query, worker, out);
  if (query.outcome_known()) return forget_if_over_locked(query);
  if (query.workers_pending_count_ > 0 || query.ended_sent_) return;
  const bool takes_part = query.nodes_[shape_.node];  // else it only waits for the outcome
  if (takes_part && query.id.issuer == shape_.node) {
    node_ended_locked(query, shape_.node, query.balance_, out);
  } else if (takes_part) {
    out.send(query.id.issuer, ended_of(query.id, shape_.node, query.cause_, query.balance_));
  }
  query.ended_sent_ = true;  // what may find no memory came first
}

// Issuer: a participant has ended.
void QueryTable::node_ended_locked(Query& query, uint32_t node, uint64_t balance, Outbound& out) {
  if (query.outcome_known()) return;
  query.balances_.try_emplace(node, balance);
  query.nodes_pending_[node] = false;
  show_locked(query);
  decide_if_all_ended_locked(query, out);
}

void QueryTable::decide_if_all_ended_locked(Query& query, Outbound& out) {
  if (query.outcome_known()) return;
  // Before this node has ended its own part it may still declare the participants.
  for (uint32_t n = 0; n < node_count(); ++n) {
    if (query.nodes_pending_[n] && query.lost_.count(n) == 0) return;
  }
  if (query.workers_pending_count_ > 0) return;
  if (!query.failed() && !is_balanced(query)) {
    // Whoever sees what was sent to it knows more, and fails the query by name.
    if (!query.ticks_to_balance_) query.ticks_to_balance_ = kTicksToBalance;
    if (*query.ticks_to_balance_ > 0) return;
    (void)fail_locked(
        query,
        Status(Code::stage_mismatch,
               fmt::format(
                   "query {}: not all workers have opened the same stages. One has ended its part "
                   "without opening a stage in which others name it, or with other senders or "
                   "receivers than they; rows may be missing",
                   query.id.to_string())),
        false, out);
  }
  Outbound told;
  for (uint32_t n = 0; n < node_count(); ++n) {
    const bool is_there = n != shape_.node && lost_[n].ok();
    query.nodes_pending_[n] = query.nodes_[n] && is_there && query.lost_.count(n) == 0;
    // Who failed it may not have known who takes part, and has told everybody.
    if (!is_there || !(query.nodes_[n] || query.failed())) continue;
    told.send(n, outcome_of(query.id, shape_.node, query.cause_, ended_[shape_.node].low_water));
  }
  // What may find no memory came first.
  settle_locked(query, query.cause_);
  out.take(std::move(told));
  show_locked(query);
  node_confirmed_locked(query, shape_.node);
}

// Issuer: a participant knows the outcome, or is lost.
void QueryTable::node_confirmed_locked(Query& query, uint32_t node) {
  query.nodes_pending_[node] = false;
  forget_if_over_locked(query);
}

// A query is remembered until its outcome is known, every local worker that takes part has asked
// for it, and, at the issuer, every live participant has confirmed.
void QueryTable::forget_if_over_locked(Query& query) {
  if (!query.outcome_known() || (query.used_ && query.workers_pending_count_ > 0)) return;
  if (query.id.issuer == shape_.node &&
      std::find(query.nodes_pending_.begin(), query.nodes_pending_.end(), true) !=
          query.nodes_pending_.end()) {
    return;
  }
  // Of hearsay only the issuer knows whether it ever began, and of an incarnation that is gone nothing
  // more comes.
  const QueryId& id = query.id;
  if (id.incarnation == shape_.incarnations[id.issuer] &&
      (!query.heard_from_ || id.issuer == shape_.node))
    ended_[id.issuer].add(id.counter);
  forget_locked(query);
}

void QueryTable::forget_locked(Query& query) {
  if (query.forgotten_) return;  // a worker still has it
  base::log(LogLevel::debug, "{}: query {} has ended: {}", shape_.node_names[shape_.node],
            query.id.to_string(), query.outcome_.ok() ? "done" : "failed");
  const auto known = queries_.find(query.id);
  const std::shared_ptr<Query> last = std::move(known->second);
  queries_.erase(known);
  if (query.heard_from_) {
    discharge_locked(query);
  } else {
    --own_count_;
  }
  hide_locked(query);
}

void QueryTable::settle_locked(Query& query, const Status& outcome) {
  query.outcome_ = outcome;
  query.outcome_known_.store(true, std::memory_order_release);
}

void QueryTable::close(const Status& cause) {
  Outbound out;
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = cause;
    base::Each each;
    for (const auto& known : queries_) {
      Query& query = *known.second;
      each.run([&] {
        (void)(query.used_ ? fail_here_locked(query, cause, out)
                           : fail_locked(query, cause, false, out));
      });
    }
    // Nobody comes any more to be told how they ended.
    for (auto known = queries_.begin(); known != queries_.end();) {
      Query& query = *(known++)->second;
      if (query.heard_from_ && query.outcome_known()) forget_locked(query);
    }
  }
  flush(out, true);
}

std::shared_ptr<Query> QueryTable::biggest_overflow_user() {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Query> biggest;
  for (const auto& [id, query] : queries_) {
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
  return queries_.size();
}

}  // namespace faro::shuffle
