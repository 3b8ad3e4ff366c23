#include "lab/simulation/churn/coordinator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "lab/simulation/checker.h"
#include "lab/simulation/churn/churn_checker.h"

namespace faro::simulation {
namespace {

// How long anything of a query may stay: what peers have said of queries that nobody declares is forgotten after twice
// query.unopened_timeout_ms = 20 s.
constexpr base::Nanoseconds kIdleTime = 45'000 * base::kMillisecond;

}  // namespace

Coordinator::Coordinator(sim::SimInternet& internet, ChurnPlan& plan, ChurnLedger& ledger)
    : internet_(internet),
      world_(internet.world()),
      plan_(plan),
      ledger_(ledger),
      chance_(mix(plan.run.seed, 0x636f6f7264)),
      members_(internet, plan, ledger, chance_) {
  plan_.run.queries.reserve(kQueryLimit);  // their places are kept
  ledger_.queries.queries.reserve(kQueryLimit);
  ledger_.queries.workers.resize(plan.run.worker_count());
}

void Coordinator::run() {
  members_.found();
  for (uint32_t i = 0; i < plan_.steps; ++i) {
    world_.sleep(chance_.below(uint64_t{1} << chance_.between(10, plan_.longest)));
    step();
  }
  settle();
  ledger_.drawn = {ledger_.changes, plan_.run.queries.size()};
  query_over_all("after all changes", plan_.narrow == 0);
  look_at_all("after all changes");
  // All go but one, which keeps nothing of them; and others take their numbers.
  std::vector<uint32_t> there = members_.ready();
  if (there.empty()) {
    members_.join(one_of(members_.free_numbers()));
    settle();
    there = members_.ready();
  }
  const uint32_t witness = one_of(there);
  for (const uint32_t number : there) {
    if (number != witness) members_.drain(number);
  }
  settle();
  look_at_witness(witness);
  for (uint32_t i = 0; i < 2; ++i) {
    const std::vector<uint32_t> free = members_.free_numbers();
    if (!free.empty()) members_.join(one_of(free));
  }
  settle();
  query_over_all("with a witness of all changes", true);
  look_at_all("at the end");
  members_.finish_all();
  world_.wait_until([this] { return members_.is_settled(); }, base::kForever, "the end of all");
}

void Coordinator::settle() {
  world_.wait_until([this] { return members_.is_settled(); }, base::kForever, "all that was begun");
}

void Coordinator::step() {
  const std::vector<uint32_t> ready = members_.ready();
  const uint64_t what = chance_.below(20);
  if (what < 3) {
    const std::vector<uint32_t> free = members_.free_numbers();
    if (!free.empty()) return members_.join(one_of(free));
  } else if (ready.size() > 1 && what < 5) {
    return members_.drain(one_of(ready));
  } else if (what == 5) {
    std::vector<uint32_t> all;  // also one that is drained
    for (const auto& [number, member] : members_.all()) {
      if (member.is_ready) all.push_back(number);
    }
    if (all.size() > 1) return members_.remove(one_of(all));
  } else if (ready.size() > 1 && what == 6) {
    return members_.kill(one_of(ready));
  } else if (ready.size() > 1 && what == 7 && plan_.narrow == 0 && members_.may_come_back()) {
    return members_.come_back(one_of(ready));
  } else if (what == 8) {
    return cancel_some();
  } else if (what < 11) {
    return cut_some();
  } else if (what == 11) {
    return stop_some();
  }
  begin_query();
}

// ------------------------------------------------------------------------------------------ queries

void Coordinator::begin_query() {
  const std::vector<uint32_t> ready = members_.ready_together();
  if (ready.empty()) return;
  std::vector<uint32_t> numbers = workload::some_of(chance_, ready);
  // Now and then the plan of the query is older than a drain: the node that begins it refuses.
  for (const auto& [number, member] : members_.all()) {
    if (member.is_drained && member.is_ready && chance_.one_in(4) &&
        members_.know_each_other(*member.process, ready))
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  begin_query(numbers, chance_.one_in(4) ? one_of(ready) : one_of(numbers));
}

void Coordinator::begin_query(const std::vector<uint32_t>& numbers, uint32_t issuer) {
  const auto index = static_cast<uint32_t>(plan_.run.queries.size());
  if (index == kQueryLimit) return;
  QueryPlan query;
  query.issuer = issuer;
  query.seed = mix(plan_.run.seed, index);
  for (const uint32_t number : numbers) {
    for (uint32_t w = 0; w < plan_.run.workers_per_node[number]; ++w)
      query.workers.push_back(plan_.run.first_worker(number) + w);
  }
  query.declared_early = chance_.one_in(2);
  query.stops_early = chance_.one_in(3);
  query.stage_bytes = chance_.between(256, (chance_.one_in(8) ? 64 : 8) << 10);
  draw_stages(chance_, {plan_.run.ring_bytes, false}, index, query);
  draw_deliveries(chance_, plan_.run, query);
  QueryOfProcesses& of = ledger_.of.emplace_back();
  for (const uint32_t number : numbers) of.processes[number] = members_[number].id();
  of.issuer = members_[issuer].id();
  of.processes[issuer] = of.issuer;
  ledger_.queries.queries.emplace_back().declared.resize(plan_.number_limit());
  ledger_.tell(world_.now(), fmt::format("query {} of node {} over nodes {}", index, issuer,
                                         fmt::join(numbers, ",")));
  plan_.run.queries.push_back(std::move(query));
  members_[issuer].order(fmt::format("begins query {}", index),
                         [this, index, &process = members_[issuer]] { begin(index, process); });
}

void Coordinator::begin(uint32_t index, Process& issuer) {
  const QueryPlan& query = plan_.run.queries[index];
  Ledger::QueryRecord& record = ledger_.queries.queries[index];
  QueryOfProcesses& of = ledger_.of[index];
  const auto any_came_back = [&](const auto& each) {
    return ledger_.fates[each.second].comes_back;
  };
  if (issuer.fate().is_lost() ||
      std::any_of(of.processes.begin(), of.processes.end(), any_came_back))
    return count("query given up before it began");
  record.id = issuer.session().begin_query();
  const bool is_drained =
      std::any_of(of.processes.begin(), of.processes.end(),
                  [&](const auto& each) { return issuer.drains.contains(each.first); });
  note_wants(index, issuer);
  of.has_begun = true;  // what happens from now on concerns it
  record.declared[issuer.number()] = true;
  const Status declared = issuer.session().declare_query(record.id, query.workers);
  if (is_drained != (declared.code() == Code::invalid_argument) ||
      (!is_drained && !declared.ok())) {
    return world_.violation(fmt::format("{} declares query {}{}: {}", issuer.name(), index,
                                        is_drained ? ", of a node that is drained" : "",
                                        declared.to_string()));
  }
  if (is_drained) {
    of.has_begun = false;
    return count("query refused for a drain");
  }
  for (const auto& [number, id] : of.processes) {
    Process& process = members_.process(id);
    if (plan_.run.takes_part(query, number))
      process.order(fmt::format("takes part in query {}", index),
                    [this, index, &process] { take(index, process); });
  }
}

void Coordinator::take(uint32_t index, Process& process) {
  const QueryPlan& query = plan_.run.queries[index];
  Ledger::QueryRecord& record = ledger_.queries.queries[index];
  const uint32_t number = process.number();
  process.note_unasked();
  note_wants(index, process);
  if (query.declared_early && !record.declared[number]) {
    record.declared[number] = true;
    // Why it cannot be is told again when it is used.
    (void)process.session().declare_query(record.id, query.workers);
  }
  const uint32_t first = plan_.run.first_worker(number);
  for (const uint32_t worker : query.workers) {
    if (plan_.run.node_of(worker) != number || !process.take(worker - first, index)) continue;
    ledger_.of[index].taken.insert(worker);
  }
}

// For coverage: links that it makes, and whether the other side has wanted them, too.
void Coordinator::note_wants(uint32_t index, Process& process) {
  const Ledger::QueryRecord& record = ledger_.queries.queries[index];
  for (const auto& [number, id] : ledger_.of[index].processes) {
    if (id == process.id() || process.core().membership().connected(number)) continue;
    count("link wanted by a query");
    if (record.declared[number]) count("link wanted by both sides at once");
  }
}

// ------------------------------------------------------------------------------------------- faults

void Coordinator::cancel_some() {
  std::vector<uint32_t> begun;
  for (uint32_t q = 0; q < ledger_.of.size(); ++q) {
    if (ledger_.of[q].has_begun && ledger_.of[q].cancelled_at == base::kForever) begun.push_back(q);
  }
  if (begun.empty()) return;
  const uint32_t index = begun[begun.size() - 1 - chance_.below(std::min<size_t>(begun.size(), 3))];
  QueryOfProcesses& of = ledger_.of[index];
  Process& process =
      members_.process(std::next(of.processes.begin(),
                                 static_cast<std::ptrdiff_t>(chance_.below(of.processes.size())))
                           ->second);
  if (!process.is_open() || process.fate().is_lost()) return;
  of.cancelled_at = world_.now();
  if (process.session().cancel_query(ledger_.queries.queries[index].id, "the user's wish").ok())
    count("cancelled");
}

void Coordinator::cut_some() {
  // A link that is being set up is not mended, but made again.
  std::vector<std::pair<uint32_t, uint32_t>> linked;
  for (const uint32_t one : members_.ready()) {
    for (const uint32_t other : members_.ready()) {
      if (one < other && members_[one].session().has_node(other) &&
          members_[other].session().has_node(one))
        linked.emplace_back(one, other);
    }
  }
  if (linked.empty()) return;
  const auto [one, other] = linked[chance_.below(linked.size())];
  internet_.fabric().faults().cut_somewhere(one, other,
                                            static_cast<uint32_t>(chance_.between(1, 4)), chance_);
  count("cut");
}

void Coordinator::stop_some() {
  const std::vector<uint32_t> ready = members_.ready();
  if (ready.empty()) return;
  world_.stall(members_[one_of(ready)].id(),
               world_.now() + chance_.between(1, plan_.run.liveness / 4));
  count("short stall");
}

// ------------------------------------------------------------------------------------- what has to hold

void Coordinator::query_over_all(const char* when, bool has_to_be_done) {
  members_.await_missing();
  const std::vector<uint32_t> ready = members_.ready();
  if (ready.empty() || world_.failed()) return;
  const auto index = static_cast<uint32_t>(plan_.run.queries.size());
  begin_query(ready, one_of(ready));
  settle();
  if (!has_to_be_done) return;
  const auto& endings = ledger_.queries.queries[index].endings;
  for (const uint32_t worker : plan_.run.queries[index].workers) {
    const auto ending = endings.find(worker);
    if (ending != endings.end() && ending->second.outcome == Outcome::done) continue;
    return world_.violation(fmt::format(
        "{} a query over all is not done at worker {}: {}", when, worker,
        ending == endings.end() ? "it has no outcome" : ending->second.cause.to_string()));
  }
}

std::string Coordinator::what_is_left(Process& process) const {
  const std::vector<Fault> none;
  const Checker checker(plan_.run, ledger_.queries, none);
  if (!internet_.fabric().turn_watch().is_at_rest(process.number()))
    return fmt::format("{} has nothing to do, but takes turns", process.name());
  // Its workers look again first: they hold what came of a query that nobody knows any more.
  std::string left = checker.check_links(process.number(), process.session(), {});
  return left.empty() ? checker.check_idle(process.number(), process.session(), process.disk())
                      : left;
}

void Coordinator::look_at_all(const char* when) {
  const base::Nanoseconds deadline = world_.now() + kIdleTime;
  for (const uint32_t number : members_.ready()) {
    for (;;) {
      const std::string left = what_is_left(members_[number]);
      if (left.empty()) break;
      if (world_.now() > deadline) return world_.violation(fmt::format("{} {}", when, left));
      world_.sleep(base::kMillisecond);
    }
  }
}

void Coordinator::look_at_witness(uint32_t number) {
  look_at_all("when all others have gone");
  Process& witness = members_[number];
  const std::set<uint32_t> linked = witness.core().membership().linked();
  const size_t links = witness.session().metrics().links.size();
  if (linked.size() == 1 && links == 1) return;
  world_.violation(fmt::format("{} is alone, but is linked with nodes {} and knows {}",
                               witness.name(), fmt::join(linked, ","), links));
}

}  // namespace faro::simulation
