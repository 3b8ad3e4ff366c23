#include "lab/soak/fixed_cluster.h"

#include <fmt/ranges.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/return_if_error.h"

namespace faro::soak {
namespace {

// Queries that the plan does not know have numbers of their own.
constexpr uint32_t kToldBy = 1u << 20, kGoesOn = 2u << 20;

void sleep_until(base::Nanoseconds when) {
  const base::Nanoseconds at = now();
  if (when > at) std::this_thread::sleep_for(std::chrono::nanoseconds(when - at));
}

}  // namespace

Result<uint64_t> FixedCluster::run(const std::function<bool()>& is_over) {
  for (uint32_t node = 0; node < kNodes; ++node) FARO_RETURN_IF_ERROR(nodes_.start(node));
  FARO_ASSIGN_OR_RETURN(const auto addresses,
                        nodes_.ask(nodes_.all(), fmt::format("cluster {}", number_), "at "));
  addresses_ = fmt::format("{}", fmt::join(addresses, ","));
  FARO_RETURN_IF_ERROR(nodes_.ask(nodes_.all(), "open " + addresses_, "open").status());
  auto fault = plan_.faults.begin();
  for (uint32_t query = 0; query < plan_.queries && !is_over(); ++query) {
    if (fault == plan_.faults.end() || fault->first != query) {
      FARO_ASSIGN_OR_RETURN(const Begun begun, queries_.begin(query, {}));
      FARO_RETURN_IF_ERROR(queries_.hear_good(begun));
    } else {
      const FaultPlan& happens = (fault++)->second;
      FARO_RETURN_IF_ERROR(happens.kind == FaultKind::paused ? pause(query, happens)
                                                             : lose(query, happens));
    }
  }
  return nodes_.close(nodes_.all(), witness_of(options_));
}

Status FixedCluster::pause(uint32_t query, const FaultPlan& fault) {
  FARO_ASSIGN_OR_RETURN(const Begun begun, queries_.begin(query, {}));
  sleep_until(begun.at + fault.after_ns);
  nodes_[fault.victim].signal(SIGSTOP);
  sleep_until(now() + fault.lasting_ns);
  nodes_[fault.victim].signal(SIGCONT);
  ++progress_.paused;
  return queries_.hear_good(begun);
}

/// One node is stopped or killed during a query: whom that concerns is told, and the others go on.
Status FixedCluster::lose(uint32_t query, const FaultPlan& fault) {
  Losses& losses = fault.kind == FaultKind::killed ? progress_.killed : progress_.stopped;
  FARO_ASSIGN_OR_RETURN(const Begun begun, queries_.begin(query, {}));
  sleep_until(begun.at + fault.after_ns);
  const base::Nanoseconds hit = now();
  nodes_[fault.victim].signal(fault.kind == FaultKind::killed ? SIGKILL : SIGSTOP);
  ++losses.count;
  uint32_t told = 0;
  FARO_RETURN_IF_ERROR(queries_.hear_of_loss(begun, fault.victim, hit, losses, told));
  std::vector<uint32_t> survivors = nodes_.all();
  if (told + 1 < survivors.size()) {
    // That query was over, or did not need the victim or all the others. The next one does.
    told = 0;
    FARO_ASSIGN_OR_RETURN(const Begun next,
                          queries_.begin(query + kToldBy, survivors, fault.victim));
    FARO_RETURN_IF_ERROR(queries_.hear_of_loss(next, fault.victim, hit, losses, told));
    if (told + 1 != survivors.size()) return broken("not all survivors were told of a loss");
  }
  std::erase(survivors, fault.victim);
  FARO_ASSIGN_OR_RETURN(const Begun after, queries_.begin(query + kGoesOn, survivors));
  FARO_RETURN_IF_ERROR(queries_.hear_good(after));
  if (fault.kind == FaultKind::killed) {
    nodes_.forget(fault.victim);
  } else {
    nodes_[fault.victim].signal(SIGCONT);
    // It may have been given up, or done before.
    FARO_RETURN_IF_ERROR(queries_.hear_rest(fault.victim));
  }
  return fault.returns ? bring_back(fault.victim) : Status::Ok();
}

/// A lost node joins the running cluster again: another process, or the same after it has closed the
/// session that the others gave up.
Status FixedCluster::bring_back(uint32_t node) {
  if (nodes_.has(node)) FARO_RETURN_IF_ERROR(nodes_.ask(node, "close", "closed ").status());
  FARO_RETURN_IF_ERROR(nodes_.start(node));
  FARO_RETURN_IF_ERROR(
      nodes_.ask(node, fmt::format("return {} {}", number_, addresses_), "open").status());
  ++progress_.returned;
  return Status::Ok();
}

}  // namespace faro::soak
