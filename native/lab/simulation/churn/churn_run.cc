#include "lab/simulation/churn/churn_run.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "lab/simulation/churn/churn_checker.h"
#include "lab/simulation/churn/coordinator.h"
#include "lab/simulation/run.h"
#include "lab/workload/plan.h"

namespace faro::simulation {
namespace {

class ChurnRun {
 public:
  explicit ChurnRun(uint64_t seed)
      : plan_(draw_churn_plan(seed)),
        world_(seed, plan_.run.knobs),
        internet_(world_),
        coordinator_(internet_, plan_, ledger_) {}

  /// Returns the violation, if any.
  std::string run() {
    world_.spawn("coordinator", [this] { coordinator_.run(); });
    const Status ran = world_.run();
    if (!ran.ok()) return std::string(ran.message());
    for (uint32_t q = 0; q < plan_.run.queries.size(); ++q) {
      if (std::string wrong = check_query(plan_, ledger_, q); !wrong.empty()) return wrong;
    }
    return "";
  }
  std::string trace() { return describe(plan_) + ledger_.story + world_.report(); }
  uint64_t hash() {
    uint64_t hash = world_.trace_hash();
    for (const Ledger::QueryRecord& record : ledger_.queries.queries) {
      for (const auto& [worker, ending] : record.endings) {
        hash = mix(hash, worker, static_cast<uint64_t>(ending.outcome),
                   static_cast<uint64_t>(ending.cause.code()));
      }
    }
    return hash;
  }
  void cover(Coverage& coverage);

 private:
  ChurnPlan plan_;
  ChurnLedger ledger_;
  sim::World world_;
  sim::SimInternet internet_;
  Coordinator coordinator_;
  const base::Nanoseconds begin_ = world_.now();
};

void ChurnRun::cover(Coverage& coverage) {
  coverage.add("nodes of a session that changes", ledger_.fates.size());
  coverage.add("nodes at its beginning", plan_.founders);
  coverage.add("queries of it", plan_.run.queries.size());
  for (const QueryPlan& query : plan_.run.queries) {
    for (const StagePlan& stage : query.stages)
      coverage.count("delivery of its stages", to_string(stage.delivery));
  }
  coverage.count("lists at its beginning", start_list_name(plan_.start_list));
  for (const auto& [what, times] : ledger_.changes) coverage.count("changes", what, times);
  for (const auto& [what, times] : ledger_.drawn.changes)
    coverage.count("changes that were drawn", what, times);
  for (const auto& [why, times] : ledger_.excuses) coverage.count("failures excused", why, times);
  for (size_t q = 0; q < plan_.run.queries.size(); ++q) {
    for (const auto& [worker, ending] : ledger_.queries.queries[q].endings) {
      const bool failed = ending.outcome == Outcome::failed;
      const auto count = [&, &cause = ending.cause](const char* ended, const char* changes) {
        coverage.count(ended, failed ? code_name(cause.code()) : "done");
        if (failed && tells_of_no_memory(cause)) coverage.count(changes, "link refused for memory");
      };
      count("its queries ended at workers", "changes");
      if (q < ledger_.drawn.queries)
        count("drawn queries ended at workers", "changes that were drawn");
    }
  }
  coverage.add("rows of a run", ledger_.queries.happened.rows);
  coverage.add("bytes of a run", ledger_.queries.happened.bytes);
  coverage.add("steps of a run", world_.steps());
  coverage.add("simulated ms of a run", (world_.now() - begin_) / base::kMillisecond);
  coverage.count("rows", "checked", ledger_.queries.happened.rows);
  coverage.count("connections", "cut", internet_.fabric().faults().cut_count());
  coverage.count("connections", "gone dark", internet_.fabric().faults().dark_count());
  cover_turns(coverage, internet_.fabric().turn_watch().counts());
}

}  // namespace

RunReport run_churn_seed(uint64_t seed) { return report_of<ChurnRun>(seed); }

RunReport run_cluster_seed(uint64_t seed) {
  return has_churn(seed) ? run_churn_seed(seed) : run_seed(seed);
}

}  // namespace faro::simulation
