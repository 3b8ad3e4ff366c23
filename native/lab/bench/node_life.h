// What a node of the benchmark does between opening its session and closing it, the same for nodes
// that were forked on this host and for those started by hand on several.
#pragma once

#include <cstdint>
#include <memory>

#include "faro/session.h"
#include "faro/status.h"

namespace faro::bench {

/// A configuration of node `node`: `config` with the cluster's shape filled in.
/// Errors: config_invalid.
Result<Config> node_config(const Config& config, uint32_t node,
                           const std::vector<std::string>& nodes, uint32_t workers_per_node);

/// Waits so long with one worker for something that never happens.
/// Errors: internal_error if the wait ends otherwise.
Status idle(Worker& worker, uint64_t idle_ns);

/// Ends the worker's part in a query, and waits for the outcome.
/// Errors: why the query has failed.
Status end_query(Worker& worker, const QueryId& query);

}  // namespace faro::bench
