#include "lab/bench/node_life.h"

#include <fmt/format.h>

#include "base/return_if_error.h"

namespace faro::bench {

Result<Config> node_config(const Config& config, uint32_t node,
                           const std::vector<std::string>& nodes, uint32_t workers_per_node) {
  Config mine = config;
  FARO_RETURN_IF_ERROR(
      mine.set("cluster.nodes", fmt::format("{}", fmt::join(nodes, ",")), "bench"));
  FARO_RETURN_IF_ERROR(mine.set("cluster.node", uint64_t{node}, "bench"));
  FARO_RETURN_IF_ERROR(mine.set("cluster.workers", uint64_t{workers_per_node}, "bench"));
  return mine;
}

Status idle(Worker& worker, uint64_t idle_ns) {
  const Outcome outcome =
      worker.wait_until([] { return false; }, Wait::at_most(std::chrono::nanoseconds(idle_ns)));
  if (outcome == Outcome::deadline) return Status::Ok();
  return Status(Code::internal_error,
                fmt::format("an idle worker's wait ended with {}", outcome_name(outcome)));
}

Status end_query(Worker& worker, const QueryId& query) {
  const Outcome outcome = worker.end_query(query);
  if (outcome == Outcome::done) return Status::Ok();
  if (outcome == Outcome::failed) return worker.status();
  return Status(Code::internal_error,
                fmt::format("the end of the query answered {}", outcome_name(outcome)));
}

}  // namespace faro::bench
