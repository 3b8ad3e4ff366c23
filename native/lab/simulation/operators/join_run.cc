#include "lab/simulation/operators/join_run.h"

#include <utility>
#include <vector>

#include "lab/simulation/operators/operator_run.h"
#include "lab/workload/join.h"

namespace faro::simulation {
namespace {

struct Joins {
  using Plan = workload::JoinPlan;
  using Part = workload::JoinPart;

  static Plan draw(uint64_t seed, std::vector<uint32_t> workers, uint64_t most_rows) {
    return Plan::draw(seed, std::move(workers), most_rows);
  }
  static void exceed_reserves(Plan& plan, uint64_t most_rows) {
    for (Plan::Side* side : {&plan.build, &plan.probe}) {
      side->keys = Plan::Keys::distinct;
      for (uint64_t& rows : side->rows) rows = 2 * most_rows / side->rows.size();
    }
  }
  static uint64_t reserve_bytes(const Plan&) {
    return RadixJoin<workload::JoinRows>::reserve_bytes();
  }
  static void cover(const Part& part, Coverage& coverage) {
    const JoinMetrics& metrics = part.metrics();
    if (metrics.spilled_bytes > 0) coverage.count("workers", "spilled");
    if (metrics.partitions_split > 0) coverage.count("workers", "split a partition");
    if (metrics.passes > 0) coverage.count("workers", "joined in passes");
    if (metrics.gulps > 0) coverage.count("workers", "joined in gulps");
    if (metrics.hot_keys > 0) coverage.count("workers", "sent lists");
    if (metrics.lists_dropped > 0) coverage.count("workers", "dropped a list");
    if (metrics.probe_rows_kept > 0) coverage.count("workers", "joined at home");
    if (part.early_pairs() > 0) coverage.count("workers", "had pairs early");
  }
};

}  // namespace

RunReport run_join_seed(uint64_t seed) { return report_of<OperatorRun<Joins>>(seed); }

}  // namespace faro::simulation
