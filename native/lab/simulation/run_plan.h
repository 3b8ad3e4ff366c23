// RunPlan: everything that a seed decides before anything runs. README.md states the distribution.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "lab/simulation/transport/sim_knobs.h"
#include "lab/workload/plan.h"

namespace faro::simulation {

using workload::Chance;
using workload::mix;
using workload::StagePlan;

struct QueryPlan : workload::QueryPlan {
  uint32_t issuer = 0;         // node, which need not take part
  bool declared_early = true;  // on every node before any worker runs; else by the node's first one
  bool has_barrier = false;    // all its workers meet before they close
};

enum class FaultKind : uint8_t {
  cancel,        // at `node`, or by a worker of it
  short_stall,   // of `node`: shorter than the time limit of liveness, so nothing may be lost
  long_stall,    // of `node`: longer
  short_outage,  // between `node` and `peer`
  half_open,     // nothing from `node` to `peer` for longer than the time limit
  death,         // of `node`
  death_return,  // of `node`, which starts again while the others go on, and dies `way` times then
  hostile,       // bytes from `node` to `peer`
  disk_full,     // of `node`
  registration,  // fails at `node`
  slow_start,    // of `node`
  lies,          // of `node`, to everybody
  bad_part,      // of a worker of `query`: it fails before it opens, only ends, or opens otherwise
  cut,     // of connections between `node` and `peer`, `count` times, which are mended in time
  apart,   // `node` and `peer` cannot reach each other for longer than link.mend_ms
  narrow,  // for a while no rows come through between `node` and `peer`, and nobody is told
};
inline constexpr uint32_t kFaultKinds = 16;
const char* fault_name(FaultKind kind) noexcept;

struct Fault {
  FaultKind kind = FaultKind::cancel;
  base::Nanoseconds at = 0;       // after the workers begin
  base::Nanoseconds lasting = 0;  // of death_return: from a start until the next death
  uint32_t node = 0;
  uint32_t peer = 0;   // never `node`
  uint32_t query = 0;  // index
  uint32_t way = 0;    // of cancelling, or of a bad part (see QueryRun)
  uint32_t count = 0;  // of hostile deliveries, of times it lies, or of cuts
};

struct RunPlan {
  uint64_t seed = 0;
  sim::Knobs knobs;
  std::vector<uint32_t> workers_per_node;
  std::vector<std::pair<std::string, std::string>> settings;
  uint64_t ring_bytes = 0;
  uint64_t wait_yields = 0;
  uint32_t shuffle_limit = 0;
  uint64_t overflow_memory_bytes = 0;
  uint64_t disk_bytes = 0;  // of each node; UINT64_MAX: never full by itself
  bool is_tight = false;  // little overflow, no disk; workers keep many batches and claim too much
  base::Nanoseconds liveness = 0;
  bool lanes_end_at_nodes = false;  // as well, or alone
  bool has_turns = false;           // network.schedule = phases
  std::vector<QueryPlan> queries;
  std::vector<Fault> faults;
  bool second_life = false;  // afterwards all nodes close and form a cluster again

  uint32_t node_count() const { return static_cast<uint32_t>(workers_per_node.size()); }
  uint32_t worker_count() const;
  uint32_t node_of(uint32_t worker) const;
  uint32_t first_worker(uint32_t node) const;
  /// A worker of the node does.
  bool takes_part(const QueryPlan& query, uint32_t node) const;
  /// It takes part, or issued the query.
  bool concerns(const QueryPlan& query, uint32_t node) const;
  bool has(FaultKind kind) const;
};

/// A quick or a slow network; when threads lose the processor.
sim::Knobs draw_knobs(Chance& chance);

/// How the stages of a query are delivered, where lanes end at nodes.
void draw_deliveries(Chance& chance, const RunPlan& plan, QueryPlan& query);

/// Draws a plan, which depends on the seed alone, everywhere.
RunPlan draw_plan(uint64_t seed);

/// In a few lines, for whoever looks into a run.
std::string describe(const RunPlan& plan);

}  // namespace faro::simulation
