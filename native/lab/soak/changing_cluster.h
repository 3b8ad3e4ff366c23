// ChangingCluster: a cluster of a soak whose nodes join, are drained, removed and killed all the time, while queries run; their
// numbers are used again by other processes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "lab/soak/memory_trend.h"
#include "lab/soak/node_group.h"
#include "lab/soak/plan.h"
#include "lab/soak/query_runs.h"
#include "lab/soak/soak.h"
#include "lab/workload/chance.h"

namespace faro::soak {

/// Threads: the controller's.
class ChangingCluster {
 public:
  /// A cluster with the arguments of FixedCluster.
  ChangingCluster(const Options& options, uint64_t number, NodeGroup& nodes, Progress& progress);

  /// Runs as FixedCluster does. It is a violation, too, if the witness keeps something of those
  /// that are gone: descriptors, threads, or more than 64 KiB of its heap.
  Result<uint64_t> run(const std::function<bool()>& is_over);

 private:
  using Begun = QueryRuns::Begun;

  // --- the nodes of the session
  Status enter(uint32_t node);
  std::vector<uint32_t> members_but(uint32_t node) const;
  std::string list_of(const std::vector<uint32_t>& nodes) const;

  // --- what happens beside a query
  Status change(const std::optional<Begun>& begun);
  Status join(uint32_t node, const std::optional<Begun>& begun);
  Status drain(const std::vector<uint32_t>& leaving, const std::optional<Begun>& begun);
  Status remove(uint32_t node, const std::optional<Begun>& begun);
  Status kill(uint32_t node, const std::optional<Begun>& begun);
  Status replace_stopped(uint32_t node, const std::optional<Begun>& begun);
  Status hear_good(const std::optional<Begun>& begun);
  Status hear_of_loss(const std::optional<Begun>& begun, uint32_t node, base::Nanoseconds hit,
                      Losses& losses);
  Status forget_at(const std::vector<uint32_t>& others, uint32_t node);
  Status query_over_all();
  Status look_at_witness();

  const Options& options_;
  const uint64_t number_;
  const ClusterPlan plan_;
  NodeGroup& nodes_;
  Progress& progress_;
  QueryRuns queries_;
  workload::Chance chance_;
  const uint32_t witness_;
  uint32_t next_query_ = 0;
  std::vector<uint32_t> members_;  // ascending; the witness is one of them
  std::array<std::string, kNodeLimit> addresses_;
  // The witness, alone: after the first round, and after every one.
  std::optional<Usage> alone_;
  MemoryTrend alone_heap_{64 << 10};
};

}  // namespace faro::soak
