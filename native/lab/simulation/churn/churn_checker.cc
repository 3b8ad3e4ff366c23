#include "lab/simulation/churn/churn_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace faro::simulation {
namespace {

bool names_node(const Status& cause, uint32_t node) {
  const std::string name = fmt::format("node {}", node);
  const std::string_view text = cause.message();
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
  }
  return false;
}

bool is_excused(const ChurnPlan& plan, const ChurnLedger& ledger, const QueryOfProcesses& of,
                const Status& cause) {
  const Code code = cause.code();
  if (code == Code::query_cancelled) return of.is_cancelled;
  if (code == Code::overflow_exhausted) return plan.run.disk_bytes != UINT64_MAX;
  const bool is_any_narrow =
      std::any_of(of.processes.begin(), of.processes.end(),
                  [&](const auto& each) { return ledger.fates[each.second].is_narrow; });
  // A link that there is no memory for is waited for in vain; then some have given the query up that others still know.
  if (is_any_narrow && (code == Code::query_ended || code == Code::peer_lost)) return true;
  if (code != Code::peer_lost) return false;
  const bool is_any_lost =
      std::any_of(of.processes.begin(), of.processes.end(),
                  [&](const auto& each) { return ledger.fates[each.second].is_lost; });
  return std::any_of(of.processes.begin(), of.processes.end(), [&](const auto& each) {
    const auto& [number, process] = each;
    // Where it has failed already for one that is lost, it keeps nobody from leaving.
    const bool may_be_gone = is_any_lost && ledger.fates[process].leaves;
    return names_node(cause, number) &&
           (ledger.fates[process].is_lost || may_be_gone || of.is_too_late);
  });
}

}  // namespace

std::string check_query(const ChurnPlan& plan, const ChurnLedger& ledger, uint32_t index) {
  const QueryPlan& query = plan.run.queries[index];
  const QueryOfProcesses& of = ledger.of[index];
  const Ledger::QueryRecord& record = ledger.queries.queries[index];
  if (!of.has_begun) return "";
  const Ending* first = nullptr;
  uint32_t first_worker = 0;
  for (const uint32_t worker : query.workers) {
    if (ledger.fates[of.processes.at(plan.run.node_of(worker))].is_lost) continue;
    const auto found = record.endings.find(worker);
    if (found == record.endings.end())
      return fmt::format("query {} has no outcome at worker {}", index, worker);
    const Ending& ending = found->second;
    if (ending.outcome == Outcome::failed && !is_excused(plan, ledger, of, ending.cause)) {
      return fmt::format(
          "query {} failed at worker {} without a reason: {}; what failed first there: {}", index,
          worker, ending.cause.to_string(), ending.failure.to_string());
    }
    if (ending.outcome == Outcome::done && record.must_fail) {
      return fmt::format("query {} is done at worker {}, but its rows cannot be complete", index,
                         worker);
    }
    if (ending.outcome == Outcome::done && !ending.failure.ok()) {
      return fmt::format("query {} is done at worker {}, but had failed there: {}", index, worker,
                         ending.failure.to_string());
    }
    if (ledger.fates[of.issuer].is_lost) continue;  // nobody decides for all
    if (first != nullptr && first->outcome != ending.outcome) {
      return fmt::format("query {} ended as {} ({}) at worker {}, as {} ({}) at worker {}", index,
                         outcome_name(first->outcome), first->cause.to_string(), first_worker,
                         outcome_name(ending.outcome), ending.cause.to_string(), worker);
    }
    first = &ending;
    first_worker = worker;
  }
  return "";
}

}  // namespace faro::simulation
