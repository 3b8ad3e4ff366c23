#include "shuffle/query.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace faro::shuffle {
namespace {

wire::QueryMessage message_of(wire::QueryMessageKind kind, const QueryId& id, uint32_t first,
                              int32_t second, std::string_view text = {}) {
  wire::QueryMessage message;
  message.kind = kind;
  message.query = to_key(id);
  message.first = first;
  message.second = second;
  message.text = std::string(text);
  return message;
}

// A code from a peer, made one that can end a query.
Status status_of(int32_t code, const std::string& text) {
  if (code == 0) return Status::Ok();
  const Code known = static_cast<Code>(code);
  return Status(code_name(known) == "unknown" ? Code::query_failed : known, text);
}

// Why a query cannot be used any more. `lost`: per node.
Status why_over(const QueryId& id, const std::vector<Status>& lost) {
  if (id.issuer < lost.size() && !lost[id.issuer].ok()) return lost[id.issuer];
  return Status(Code::query_ended, fmt::format("query {} has ended", id.to_string()));
}

}  // namespace

wire::QueryKey to_key(const QueryId& id) { return {id.counter, id.incarnation, id.issuer, 0}; }
QueryId to_id(const wire::QueryKey& key) { return {key.counter, key.incarnation, key.issuer, 0}; }

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
    if (free_slots_.empty()) return;
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
  query.workers_pending_count_ = static_cast<uint32_t>(
      std::count(query.workers_pending_.begin(), query.workers_pending_.end(), true));
  query.nodes_pending_ = query.nodes_;
}

std::shared_ptr<Query> QueryTable::find_locked(const QueryId& id) {
  if (id.counter == 0 || id.issuer >= node_count()) return nullptr;
  // Another incarnation of the issuer is another life: all its queries ended with it.
  if (id.incarnation != shape_.incarnations[id.issuer]) return nullptr;
  if (id.issuer == shape_.node && id.counter > counter_) return nullptr;  // never begun
  const auto it = queries_.find(id);
  if (it != queries_.end()) return it->second;
  if (ended_[id.issuer].contains(id.counter)) return nullptr;
  if (!lost_[id.issuer].ok()) return nullptr;  // it ended with its issuer: nobody else would end it
  if (queries_.size() >= kQueryLimit) return nullptr;
  auto query = std::make_shared<Query>(id);
  set_participants(*query, {});
  query->since_ = ticked_at_;
  queries_.emplace(id, query);
  show_locked(*query);
  return query;
}

std::shared_ptr<Query> QueryTable::find(const QueryId& id) {
  std::lock_guard lock(mutex_);
  return find_locked(id);
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
  const std::shared_ptr<Query> query = find_locked(id);
  if (query == nullptr) return why_over(id, lost_);
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
  show_locked(*query);
  // An issuer that takes no part may have been waited for.
  if (id.issuer == shape_.node) decide_if_all_ended_locked(*query, out);
  return Status::Ok();
}

Result<std::shared_ptr<Query>> QueryTable::use(const QueryId& id) {
  Outbound out;
  std::shared_ptr<Query> query;
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok()) return closed_;
    query = find_locked(id);
    if (query == nullptr) {
      if (queries_.size() >= kQueryLimit) {
        return Status(Code::limit_exceeded,
                      fmt::format("{} queries are running, the limit", kQueryLimit));
      }
      return why_over(id, lost_);
    }
    query->used_ = true;
    for (uint32_t n = 0; n < node_count(); ++n) {
      if (query->nodes_[n] && !lost_[n].ok()) fail_locked(*query, lost_[n], true, out);
    }
  }
  flush(out, !out.empty());
  return query;
}

// Once per query: with its first cause here, which names the peer if it was one.
void QueryTable::log_failure(const Query& query) const {
  base::log(LogLevel::warning, "{}: query {} failed: {}", shape_.node_names[shape_.node],
            query.id.to_string(), query.cause_.to_string());
}

bool QueryTable::fail_locked(Query& query, const Status& cause, bool tell_others, Outbound& out) {
  if (query.failed() || query.outcome_known()) return false;
  query.cause_ = cause;
  query.failed_.store(true, std::memory_order_release);
  failed_count_.fetch_add(1, std::memory_order_relaxed);
  show_locked(query);
  log_failure(query);
  if (tell_others) {
    for (uint32_t n = 0; n < node_count(); ++n) {
      const bool concerned = query.nodes_[n] || n == query.id.issuer;
      if (!concerned || n == shape_.node) continue;
      out.emplace_back(n, message_of(wire::QueryMessageKind::fail, query.id, shape_.node,
                                     static_cast<int32_t>(cause.code()), cause.message()));
    }
  }
  return true;
}

void QueryTable::flush(Outbound& out, bool alert) {
  for (const auto& [node, message] : out) environment_.send(node, message);
  if (alert) environment_.alert_workers();
}

void QueryTable::fail(Query& query, const Status& cause) {
  Outbound out;
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = fail_locked(query, cause, true, out);
  }
  flush(out, first);
}

void QueryTable::cancel(const QueryId& id, const Status& cause) {
  if (const std::shared_ptr<Query> query = find(id)) fail(*query, cause);
}

void QueryTable::stop(Query& query, uint32_t stage, uint32_t receiver,
                      std::span<const uint32_t> senders) {
  std::vector<bool> nodes(node_count());
  for (uint32_t sender : senders) nodes[node_of_worker(sender)] = true;
  Outbound out;
  {
    std::lock_guard lock(mutex_);
    for (uint32_t n = 0; n < node_count(); ++n) {
      if (!nodes[n]) continue;
      if (n == shape_.node) {
        query.stops_.push_back({stage, receiver});
      } else {
        out.emplace_back(n, message_of(wire::QueryMessageKind::stop, query.id, stage,
                                       static_cast<int32_t>(receiver)));
      }
    }
  }
  flush(out, true);
}

std::vector<uint32_t> QueryTable::stops(Query& query, uint32_t stage) {
  std::vector<uint32_t> receivers;
  std::lock_guard lock(mutex_);
  for (const Query::Stop& s : query.stops_) {
    if (s.stage == stage) receivers.push_back(s.receiver);
  }
  return receivers;
}

void QueryTable::add_unopened(Query& query, uint32_t worker, uint32_t stage, uint32_t sender,
                              base::Nanoseconds now) {
  std::lock_guard lock(mutex_);
  query.unopened_.push_back({worker, stage, sender, now});
  show_locked(query);
}

void QueryTable::remove_unopened(Query& query, uint32_t worker, uint32_t stage) {
  std::lock_guard lock(mutex_);
  std::erase_if(query.unopened_,
                [&](const Query::Unopened& u) { return u.worker == worker && u.stage == stage; });
  show_locked(query);
}

void QueryTable::end(Query& query, uint32_t worker) {
  Outbound out;
  {
    std::lock_guard lock(mutex_);
    const uint32_t local = worker - shape_.first_worker[shape_.node];
    if (query.workers_pending_[local]) {
      query.workers_pending_[local] = false;
      --query.workers_pending_count_;
      show_locked(query);
    }
    if (query.outcome_known()) {
      forget_if_over_locked(query);
      return;
    }
    if (query.workers_pending_count_ > 0 || query.ended_sent_) return;
    query.ended_sent_ = true;
    if (!query.nodes_[shape_.node]) return;  // only waits for the outcome
    const Status result = query.failed() ? query.cause_ : Status::Ok();
    if (query.id.issuer == shape_.node) {
      node_ended_locked(query, shape_.node, result, out);
    } else {
      out.emplace_back(query.id.issuer,
                       message_of(wire::QueryMessageKind::ended, query.id, shape_.node,
                                  static_cast<int32_t>(result.code()), result.message()));
    }
  }
  flush(out, true);
}

// Issuer: a participant has ended.
void QueryTable::node_ended_locked(Query& query, uint32_t node, const Status& result,
                                   Outbound& out) {
  if (!result.ok()) fail_locked(query, result, true, out);
  if (query.outcome_known() || !query.nodes_pending_[node]) return;
  query.nodes_pending_[node] = false;
  show_locked(query);
  decide_if_all_ended_locked(query, out);
}

void QueryTable::decide_if_all_ended_locked(Query& query, Outbound& out) {
  if (query.outcome_known()) return;
  // Before this node has ended its own part it may still declare the participants.
  for (uint32_t n = 0; n < node_count(); ++n) {
    if (query.nodes_pending_[n] && lost_[n].ok()) return;
  }
  if (query.workers_pending_count_ > 0) return;
  query.outcome_known_.store(true, std::memory_order_release);
  for (uint32_t n = 0; n < node_count(); ++n) {
    const bool is_there = n != shape_.node && lost_[n].ok();
    query.nodes_pending_[n] = query.nodes_[n] && is_there;
    // Who failed it may not have known who takes part, and has told everybody.
    if (!is_there || !(query.nodes_[n] || query.failed())) continue;
    wire::QueryMessage message =
        message_of(wire::QueryMessageKind::outcome, query.id, shape_.node,
                   static_cast<int32_t>(query.cause_.code()), query.cause_.message());
    message.low_water = ended_[shape_.node].low_water;
    out.emplace_back(n, std::move(message));
  }
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
  const QueryId id = query.id;
  ended_[id.issuer].add(id.counter);
  const auto known = queries_.find(id);
  if (known == queries_.end()) return;  // forgotten already; a worker still has it
  base::log(LogLevel::debug, "{}: query {} has ended: {}", shape_.node_names[shape_.node],
            id.to_string(), query.cause_.ok() ? "done" : "failed");
  const std::shared_ptr<Query> last = std::move(known->second);
  queries_.erase(known);
  hide_locked(query);
}

void QueryTable::on_message(uint32_t from_node, const wire::QueryMessage& message) {
  using Kind = wire::QueryMessageKind;
  const QueryId id = to_id(message.query);
  Outbound out;
  bool alert = false;
  {
    std::lock_guard lock(mutex_);
    const std::shared_ptr<Query> query = find_locked(id);
    if (message.kind == Kind::outcome) {
      if (from_node != id.issuer) return;  // only the issuer decides
      if (query != nullptr && !query->outcome_known()) {
        if (!query->failed()) query->cause_ = status_of(message.second, message.text);
        if (!query->cause_.ok() && !query->failed()) {
          query->failed_.store(true, std::memory_order_release);
          failed_count_.fetch_add(1, std::memory_order_relaxed);
          log_failure(*query);
        }
        query->outcome_known_.store(true, std::memory_order_release);
        alert = true;
        show_locked(*query);
        forget_if_over_locked(*query);
      }
      if (id.issuer < node_count() && id.incarnation == shape_.incarnations[id.issuer]) {
        ended_[id.issuer].raise(std::min(message.low_water, id.counter));
      }
      out.emplace_back(from_node, message_of(Kind::confirm, id, shape_.node, 0));
    } else if (query == nullptr) {
      // Ended here already. A participant that asks again is answered, so that it does not wait for
      // ever.
      if (message.kind == Kind::ended && id.issuer == shape_.node) {
        out.emplace_back(from_node, message_of(Kind::outcome, id, shape_.node,
                                               static_cast<int32_t>(Code::query_ended),
                                               fmt::format("query {} has ended", id.to_string())));
      }
    } else {
      switch (message.kind) {
        case Kind::fail: {
          Status cause = status_of(message.second, message.text);
          if (cause.ok()) cause = Status(Code::query_failed, "failed without a cause");
          alert = fail_locked(*query, cause, false, out);
          break;
        }
        case Kind::stop: {
          const auto receiver = static_cast<uint32_t>(message.second);
          if (!has_worker(from_node, receiver)) break;  // nobody stops for another node's workers
          // Each receiver of each stage stops once; a peer that repeats itself does not fill
          // memory.
          const bool known =
              std::any_of(query->stops_.begin(), query->stops_.end(), [&](const Query::Stop& s) {
                return s.stage == message.first && s.receiver == receiver;
              });
          if (!known && query->stops_.size() < kQueryLimit)
            query->stops_.push_back({message.first, receiver});
          alert = true;
          break;
        }
        case Kind::ended:
          if (id.issuer != shape_.node) break;
          node_ended_locked(*query, from_node, status_of(message.second, message.text), out);
          alert = query->outcome_known() || query->failed();
          break;
        case Kind::confirm:
          if (id.issuer == shape_.node && query->outcome_known())
            node_confirmed_locked(*query, from_node);
          break;
        case Kind::outcome:
          break;
      }
    }
  }
  flush(out, alert);
}

void QueryTable::on_peer_lost(uint32_t node, const Status& cause) {
  Outbound out;
  {
    std::lock_guard lock(mutex_);
    lost_[node] = cause;
    std::vector<std::shared_ptr<Query>> concerned;
    for (const auto& [id, query] : queries_) {
      if (query->nodes_[node] || id.issuer == node) concerned.push_back(query);
    }
    for (const std::shared_ptr<Query>& query : concerned) {
      if (query->outcome_known()) {
        if (query->id.issuer == shape_.node) node_confirmed_locked(*query, node);
        continue;
      }
      // This node has ended its part: all that is left is the issuer's answer, and it knows about
      // `node`, which may well have that answer already and have left with it.
      if (query->ended_sent_ && query->id.issuer != node && query->id.issuer != shape_.node)
        continue;
      // What only a peer's message made known here needs nobody: who takes part is not known yet, and
      // its first use here looks at who is lost.
      if (!query->used_ && !query->declared_ && query->id.issuer != node) continue;
      fail_locked(*query, cause, true, out);
      if (query->id.issuer == node) {  // nobody else will answer
        query->outcome_known_.store(true, std::memory_order_release);
        forget_if_over_locked(*query);
      } else if (query->id.issuer == shape_.node) {
        decide_if_all_ended_locked(*query, out);
      }
    }
  }
  flush(out, true);
}

void QueryTable::on_tick(base::Nanoseconds now) {
  Outbound out;
  bool alert = false;
  {
    std::lock_guard lock(mutex_);
    ticked_at_ = now;
    for (const auto& [id, query] : queries_) {
      if (query->shown_in_) show_locked(*query);  // with what it has in overflow now
      for (const Query::Unopened& u : query->unopened_) {
        if (now - u.since < unopened_timeout_ns_ || now < u.since) continue;
        alert |= fail_locked(
            *query,
            Status(Code::query_unopened,
                   fmt::format(
                       "worker {} sent rows of stage {} to worker {}, which did not open it within "
                       "query.unopened_timeout_ms = {}",
                       u.sender, u.stage, u.worker, unopened_timeout_ns_ / 1'000'000)),
            true, out);
        break;
      }
    }
  }
  flush(out, alert);
}

void QueryTable::close(const Status& cause) {
  Outbound out;
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = cause;
    for (const auto& [id, query] : queries_) fail_locked(*query, cause, query->used_, out);
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
