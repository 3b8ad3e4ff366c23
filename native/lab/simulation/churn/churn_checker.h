// What has to hold when the queries of a session that changes have ended. What has to hold of links and of what is left stands in
// process.cc and coordinator.cc, where it is seen.
#pragma once

#include <cstdint>
#include <string>

#include "lab/simulation/churn/churn_ledger.h"
#include "lab/simulation/churn/churn_plan.h"

namespace faro::simulation {

/// Every worker that has begun with a query knows how it ended. Where it ended before the worker's process was lost, it ended
/// with data or with an error for which there was a reason by then; and, before its issuer was lost, in the same way for all.
/// Counts the reasons. Answers the first thing that is wrong, or nothing.
std::string check_query(const ChurnPlan& plan, ChurnLedger& ledger, uint32_t index);

/// Whether a cause says that there was no memory.
bool tells_of_no_memory(const Status& cause);

}  // namespace faro::simulation
