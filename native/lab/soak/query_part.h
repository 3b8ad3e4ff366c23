// A worker's part in a query of a soak: sends rows that are known beforehand, and compares what arrives.
#pragma once

#include <cstdint>

#include "faro/query.h"
#include "faro/session.h"
#include "faro/status.h"
#include "lab/soak/plan.h"

namespace faro::soak {

/// Returns how the query ended. Rows that came are added to `rows`.
/// Threads: the worker's; hands it over at the end. Blocks: until the query has ended.
/// Errors: the query's; internal_error: a row was lost, doubled, out of order or damaged.
Status run_part(Worker& worker, const QueryId& id, const QueryPlan& plan, uint64_t ring_bytes,
                uint64_t& rows);

}  // namespace faro::soak
