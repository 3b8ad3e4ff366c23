// QueryRuns: the queries of one cluster of a soak: begun on an issuer, run by all that take part, and how they have to end.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "lab/soak/node_group.h"
#include "lab/soak/plan.h"
#include "lab/soak/soak.h"

namespace faro::soak {

/// Threads: the controller's.
class QueryRuns {
 public:
  /// A query under way.
  struct Begun {
    uint32_t query = 0;
    base::Nanoseconds at = 0;
    std::vector<uint32_t> nodes;  // that take part
    uint32_t issuer = 0;
    bool cancelled = false;

    bool contains(uint32_t node) const;
  };
  static constexpr uint32_t kNobody = ~0u;

  /// All outlive it. `number`: of the cluster.
  QueryRuns(const Options& options, const ClusterPlan& plan, uint64_t number, NodeGroup& nodes,
            Progress& progress)
      : options_(options), plan_(plan), number_(number), nodes_(nodes), progress_(progress) {}

  /// `nodes`: as draw_query. `without`: is not asked to issue it. Errors: a violation, as of all that follow.
  Result<Begun> begin(uint32_t query, const std::vector<uint32_t>& nodes,
                      uint32_t without = kNobody);
  /// All parts end as the plan says.
  Status hear_good(const Begun& begun);
  /// All parts end of a query that a node was lost in, at that time, for the others: it was done,
  /// or failed in time and by that node's name. `told`: counts the survivors to whom it failed.
  Status hear_of_loss(const Begun& begun, uint32_t victim, base::Nanoseconds hit, Losses& losses,
                      uint32_t& told);
  /// The parts that a node still has to tell of, in whatever way they ended.
  Status hear_rest(uint32_t node);

 private:
  Result<Ending> hear_ending(uint32_t node);
  static Status unexpected(const Begun& begun, uint32_t node, const Ending& ending);

  const Options& options_;
  const ClusterPlan& plan_;
  const uint64_t number_;
  NodeGroup& nodes_;
  Progress& progress_;
};

}  // namespace faro::soak
