// What has to hold when the queries of a session that changes have ended. What has to hold of links and of what is left stands in
// process.cc and coordinator.cc, where it is seen.
#pragma once

#include <cstdint>
#include <string>

#include "lab/simulation/churn/churn_ledger.h"
#include "lab/simulation/churn/churn_plan.h"

namespace faro::simulation {

/// Every worker of a process that was not lost knows how the query ended: with data, or with an error for which there was
/// a reason; and all know the same. Answers the first thing that is wrong, or nothing.
std::string check_query(const ChurnPlan& plan, const ChurnLedger& ledger, uint32_t index);

}  // namespace faro::simulation
