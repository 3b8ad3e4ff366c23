#include "lab/simulation/operators/aggregation_run.h"

#include <utility>
#include <vector>

#include "lab/simulation/operators/operator_run.h"
#include "lab/workload/aggregation.h"

namespace faro::simulation {
namespace {

struct Aggregations {
  using Plan = workload::AggregationPlan;
  using Part = workload::AggregationPart;

  static Plan draw(uint64_t seed, std::vector<uint32_t> workers, uint64_t most_rows) {
    return Plan::draw(seed, std::move(workers), most_rows);
  }
  static void exceed_reserves(Plan& plan, uint64_t most_rows) {
    plan.keys = workload::Keys::distinct;
    for (uint64_t& rows : plan.rows) rows = most_rows / plan.rows.size();
  }
  static uint64_t reserve_bytes(const Plan& plan) {
    return plan.depth * Aggregation<workload::Readings>::reserve_bytes();
  }
  static void cover(const Part& part, Coverage& coverage) {
    const AggregationMetrics& metrics = part.metrics();
    if (metrics.spilled_bytes > 0) coverage.count("workers", "spilled");
    if (metrics.rows_passed > 0) coverage.count("workers", "passed rows");
    if (metrics.partitions_split > 0) coverage.count("workers", "split a partition");
  }
};

}  // namespace

RunReport run_aggregation_seed(uint64_t seed) { return report_of<OperatorRun<Aggregations>>(seed); }

}  // namespace faro::simulation
