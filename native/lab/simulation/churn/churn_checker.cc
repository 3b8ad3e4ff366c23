#include "lab/simulation/churn/churn_checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/simulation/checker.h"

namespace faro::simulation {
namespace {

bool tells_of_no_link(const Status& cause) {
  return tells_of_no_memory(cause) ||
         cause.message().find("was not linked") != std::string_view::npos;
}

// A link that there is no memory for is waited for in vain.
bool lacks_a_link(const ChurnLedger& ledger, uint32_t index) {
  const QueryOfProcesses& of = ledger.of[index];
  const auto& endings = ledger.queries.queries[index].endings;
  return std::any_of(of.processes.begin(), of.processes.end(),
                     [&](const auto& each) { return ledger.fates[each.second].is_narrow; }) &&
         std::any_of(endings.begin(), endings.end(), [](const auto& each) {
           return tells_of_no_link(each.second.cause) || tells_of_no_link(each.second.failure);
         });
}

// Why a query may have failed so by then; null: there was no reason.
const char* excuse_of(const ChurnLedger& ledger, uint32_t index, const Ending& ending) {
  const QueryOfProcesses& of = ledger.of[index];
  const Code code = ending.cause.code();
  if (code == Code::query_cancelled) return of.cancelled_at <= ending.at ? "cancelled" : nullptr;
  const auto is_any_lost_by = [&](base::Nanoseconds at) {
    return std::any_of(of.processes.begin(), of.processes.end(),
                       [&](const auto& each) { return ledger.fates[each.second].lost_at <= at; });
  };
  if (code == Code::peer_lost) {
    for (const auto& [number, process] : of.processes) {
      if (!names_node(ending.cause, number)) continue;
      if (ledger.fates[process].lost_at <= ending.at) return "node lost";
      if (of.too_late.contains(number)) return "node drained before the declaration";
      // A node that lets go of a drained one is gone for that. The query keeps nobody from that
      // once it has failed there.
      if (std::any_of(of.processes.begin(), of.processes.end(),
                      [&, one = process](const auto& each) {
                        const auto let_go = ledger.let_go.find({one, each.second});
                        if (let_go == ledger.let_go.end() || let_go->second > ending.at)
                          return false;
                        return of.too_late.contains(each.first) || is_any_lost_by(let_go->second);
                      }))
        return "node had let go of a drained one";
    }
  }
  // Others may hear of the loss from a node that has removed the issuer already.
  const uint32_t issuer = ledger.queries.queries[index].id.issuer;
  if (code == Code::query_unopened && names_node(ending.cause, issuer) &&
      ledger.fates[of.issuer].lost_at <= ending.at)
    return "issuer lost, and removed where rows came";
  return code == Code::peer_lost && lacks_a_link(ledger, index) ? "no memory for a link" : nullptr;
}

std::string at_worker(uint32_t worker, const Ending& ending) {
  return fmt::format("at worker {} (at {:.3f} ms)", worker, static_cast<double>(ending.at) / 1e6);
}

}  // namespace

bool tells_of_no_memory(const Status& cause) {
  return cause.message().find("memory.limit_bytes") != std::string_view::npos;
}

std::string check_query(const ChurnPlan& plan, ChurnLedger& ledger, uint32_t index) {
  const QueryPlan& query = plan.run.queries[index];
  const QueryOfProcesses& of = ledger.of[index];
  const Ledger::QueryRecord& record = ledger.queries.queries[index];
  if (!of.has_begun) return "";
  const Ending* first = nullptr;
  uint32_t first_worker = 0;
  for (const uint32_t worker : query.workers) {
    const Fate& fate = ledger.fates[of.processes.at(plan.run.node_of(worker))];
    const auto found = record.endings.find(worker);
    if (found == record.endings.end()) {
      if (fate.is_lost() && !of.taken.contains(worker)) continue;  // it was never asked to
      return fmt::format("query {} has no outcome at worker {}", index, worker);
    }
    const Ending& ending = found->second;
    if (fate.lost_at <= ending.at) continue;  // it knows what it can know
    if (ending.outcome == Outcome::done && record.must_fail) {
      return fmt::format("query {} is done {}, but its rows cannot be complete", index,
                         at_worker(worker, ending));
    }
    if (ending.outcome == Outcome::done && !ending.failure.ok()) {
      return fmt::format("query {} is done {}, but had failed there: {}", index,
                         at_worker(worker, ending), ending.failure.to_string());
    }
    if (ending.outcome == Outcome::failed) {
      const char* const excuse = excuse_of(ledger, index, ending);
      if (excuse == nullptr) {
        return fmt::format("query {} failed {} without a reason: {}; what failed first there: {}",
                           index, at_worker(worker, ending), ending.cause.to_string(),
                           ending.failure.to_string());
      }
      ++ledger.excuses[excuse];
    }
    if (ledger.fates[of.issuer].lost_at <= ending.at) continue;  // nobody decides for all
    if (first != nullptr && first->outcome != ending.outcome) {
      return fmt::format("query {} ended as {} ({}) {}, as {} ({}) {}", index,
                         outcome_name(first->outcome), first->cause.to_string(),
                         at_worker(first_worker, *first), outcome_name(ending.outcome),
                         ending.cause.to_string(), at_worker(worker, ending));
    }
    first = &ending;
    first_worker = worker;
  }
  return "";
}

}  // namespace faro::simulation
