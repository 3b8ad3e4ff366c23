#include "lab/soak/query_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/return_if_error.h"
#include "lab/workload/chance.h"

namespace faro::soak {

bool QueryRuns::Begun::contains(uint32_t node) const {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

Result<QueryRuns::Begun> QueryRuns::begin(uint32_t query, const std::vector<uint32_t>& nodes,
                                          uint32_t without) {
  Begun begun;
  begun.query = query;
  const QueryPlan query_plan = draw_query(options_, plan_, number_, query, nodes);
  uint32_t bits = 0;
  for (const uint32_t node : nodes) bits |= 1u << node;
  std::vector<uint32_t> issuers;
  for (uint32_t node = 0; node < plan_.workers_per_node.size(); ++node) {
    if (!query_plan.takes_part(plan_, node)) continue;
    begun.nodes.push_back(node);
    if (node != without) issuers.push_back(node);
  }
  begun.cancelled = query_plan.cancelled_by.has_value();
  begun.issuer = issuers[workload::mix(query_plan.seed, 4) % issuers.size()];
  FARO_ASSIGN_OR_RETURN(const std::string id, nodes_.ask(begun.issuer, "begin", "query "));
  for (const uint32_t node : begun.nodes)
    nodes_.run(node, fmt::format("{} {} {}", query, bits, id));
  begun.at = base::SystemClock::instance().now_ns();
  ++progress_.queries;
  return begun;
}

Status QueryRuns::hear_good(const Begun& begun) {
  for (const uint32_t node : begun.nodes) {
    FARO_ASSIGN_OR_RETURN(const Ending ended, hear_ending(node));
    const std::string expected = begun.cancelled ? "query_cancelled" : "ok";
    if (ended.code != expected) return unexpected(begun, node, ended);
  }
  progress_.cancelled += begun.cancelled;
  return Status::Ok();
}

Status QueryRuns::hear_of_loss(const Begun& begun, uint32_t victim, base::Nanoseconds hit,
                               Losses& losses, uint32_t& told) {
  size_t done = 0, ended_count = 0;
  for (const uint32_t node : begun.nodes) {
    if (node == victim) continue;
    FARO_ASSIGN_OR_RETURN(const Ending ended, hear_ending(node));
    ++ended_count;
    done += ended.code == "ok";
    if (ended.code == "ok" || (begun.cancelled && ended.code == "query_cancelled")) continue;
    if (!begun.contains(victim) || ended.code != "peer_lost" ||
        ended.text.find(fmt::format("node {} ", victim)) == std::string::npos)
      return unexpected(begun, node, ended);
    const base::Nanoseconds since = std::max(hit, begun.at);
    const double seconds = static_cast<double>(ended.at - std::min(ended.at, since)) / 1e9;
    losses.longest_seconds = std::max(losses.longest_seconds, seconds);
    if (seconds > static_cast<double>(options_.liveness_ms) / 1e3 + kTellingSeconds) {
      return broken(fmt::format("query {}: node {} was told of the loss of node {} after {:.3f} s",
                                begun.query, node, victim, seconds));
    }
    ++losses.told;
    ++told;
  }
  // The issuer's answer is the outcome; only of what went wrong first may they have heard differently.
  if (begun.issuer != victim && done != 0 && done != ended_count) {
    return broken(fmt::format("query {}, issued by node {}, was done for {} of {} survivors",
                              begun.query, begun.issuer, done, ended_count));
  }
  progress_.failed += told != 0;
  return Status::Ok();
}

Status QueryRuns::hear_rest(uint32_t node) {
  while (nodes_.owed(node) > 0) FARO_RETURN_IF_ERROR(hear_ending(node).status());
  return Status::Ok();
}

Result<Ending> QueryRuns::hear_ending(uint32_t node) {
  FARO_ASSIGN_OR_RETURN(Ending ending, nodes_.hear_ending(node));
  progress_.rows += ending.rows;
  return ending;
}

Status QueryRuns::unexpected(const Begun& begun, uint32_t node, const Ending& ending) {
  return broken(fmt::format("query {} ended on node {} as {}{}", begun.query, node, ending.code,
                            ending.text));
}

}  // namespace faro::soak
