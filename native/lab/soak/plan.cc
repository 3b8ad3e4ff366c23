#include "lab/soak/plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/clock.h"

namespace faro::soak {
namespace {

using workload::Chance;
using workload::mix;

// 2^least … 2^most, each power as likely.
uint64_t power(Chance& chance, uint64_t least, uint64_t most) {
  return uint64_t{1} << chance.between(least, most);
}

FaultPlan draw_fault(const Options& options, Chance& chance, FaultKind kind) {
  FaultPlan fault;
  fault.kind = kind;
  do {
    fault.victim = static_cast<uint32_t>(chance.below(kNodes));
  } while (fault.victim == witness_of(options));
  // Most queries take some milliseconds: every phase of them is met.
  fault.after_ns = chance.below(power(chance, 0, 5) * base::kMillisecond);
  fault.lasting_ns = chance.below(options.liveness_ms * base::kMillisecond / 4);
  return fault;
}

// At least one worker of two nodes.
std::vector<uint32_t> draw_workers(const ClusterPlan& cluster, Chance& chance) {
  std::vector<uint32_t> workers;
  const bool all = chance.one_in(2);
  uint32_t first = 0;
  for (uint32_t node = 0; node < kNodes; ++node) {
    const uint32_t end = first + cluster.workers_per_node[node];
    for (uint32_t w = first; w < end; ++w) {
      if (all || (w == first && node < 2) || chance.one_in(2)) workers.push_back(w);
    }
    first = end;
  }
  return workers;
}

void draw_deliveries(const ClusterPlan& cluster, QueryPlan& query) {
  for (workload::StagePlan& stage : query.stages) {
    const uint64_t draw = mix(query.seed, stage.stage, 5) % 3;
    if (draw == 0) replicate(stage);
    if (draw == 1)
      deliver_to_nodes(stage, [&](uint32_t worker) { return cluster.node_of(worker); });
  }
}

}  // namespace

uint32_t ClusterPlan::first_worker(uint32_t node) const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.begin() + node, 0u);
}

uint32_t ClusterPlan::node_of(uint32_t worker) const {
  uint32_t node = 0;
  while (worker >= workers_per_node[node]) worker -= workers_per_node[node++];
  return node;
}

bool QueryPlan::takes_part(const ClusterPlan& cluster, uint32_t node) const {
  const uint32_t first = cluster.first_worker(node);
  return std::any_of(workers.begin(), workers.end(), [&](uint32_t worker) {
    return worker >= first && worker - first < cluster.workers_per_node[node];
  });
}

uint32_t witness_of(const Options& options) { return static_cast<uint32_t>(options.seed % kNodes); }

ClusterPlan draw_cluster(const Options& options, uint64_t number) {
  Chance chance(mix(options.seed, number, 1));
  ClusterPlan plan;
  std::string workers;
  if (options.churn) {
    plan.workers_per_node.assign(kNodeLimit, static_cast<uint32_t>(chance.between(1, 2)));
    workers = std::to_string(plan.workers_per_node[0]);
  } else {
    for (uint32_t node = 0; node < kNodes; ++node) {
      plan.workers_per_node.push_back(static_cast<uint32_t>(chance.between(1, 2)));
      workers += (node == 0 ? "" : ",") + std::to_string(plan.workers_per_node.back());
    }
  }
  constexpr const char* kTransports[] = {"shm", "tcp", "auto"};
  const std::string drawn = kTransports[chance.below(3)];
  plan.ring_bytes = power(chance, 12, 16);
  plan.settings = {
      {"cluster.workers", workers},
      {"transport", options.transport.empty() ? drawn : options.transport},
      {"liveness.timeout_ms", std::to_string(options.liveness_ms)},
      {"ring.bytes", std::to_string(plan.ring_bytes)},
      {"ring.per_lane", std::to_string(chance.between(1, 3))},
      {"transfer.threshold_bytes", std::to_string(chance.below(plan.ring_bytes / 2))},
      {"overflow.memory_bytes", std::to_string(power(chance, 16, 22))},
  };
  constexpr const char* kLaneEnds[] = {"workers", "node", "both"};
  const uint64_t ends = mix(options.seed, number, 4) % std::size(kLaneEnds);
  plan.lanes_end_at_nodes = ends != 0;
  plan.settings.emplace_back("lane.ends", kLaneEnds[ends]);
  if (options.churn) {
    plan.settings.emplace_back("cluster.id", "soak " + std::to_string(number));
    plan.settings.emplace_back("cluster.node_limit", std::to_string(kNodeLimit));
    plan.rounds = static_cast<uint32_t>(chance.between(4, 40));
    return plan;
  }
  const bool only_kills = options.kills != 0;
  plan.queries = static_cast<uint32_t>(only_kills ? chance.between(1, 4) : chance.between(5, 60));
  const uint32_t last = plan.queries - 1;
  if (only_kills) {
    plan.faults.push_back({last, draw_fault(options, chance, FaultKind::killed)});
    return plan;
  }
  for (uint32_t query = 0; query < last; ++query) {
    if (chance.one_in(25)) {
      plan.faults.push_back({query, draw_fault(options, chance, FaultKind::paused)});
    } else if (chance.one_in(40)) {
      const FaultKind kind = chance.one_in(3) ? FaultKind::stopped : FaultKind::killed;
      plan.faults.push_back({query, draw_fault(options, chance, kind)});
      plan.faults.back().second.returns = true;
    }
  }
  // The last loss ends its cluster.
  const uint64_t ending = chance.below(8);
  if (ending < 4) {
    plan.faults.push_back({last, draw_fault(options, chance, FaultKind::killed)});
  } else if (ending < 6) {
    plan.faults.push_back({last, draw_fault(options, chance, FaultKind::stopped)});
  }
  return plan;
}

QueryPlan draw_query(const Options& options, const ClusterPlan& cluster, uint64_t cluster_number,
                     uint32_t query, const std::vector<uint32_t>& nodes) {
  QueryPlan plan;
  plan.seed = mix(options.seed, cluster_number, query, 2);
  Chance chance(plan.seed);
  if (nodes.empty()) {
    plan.workers = draw_workers(cluster, chance);
  } else {
    for (const uint32_t node : nodes) {
      for (uint32_t w = 0; w < cluster.workers_per_node[node]; ++w)
        plan.workers.push_back(cluster.first_worker(node) + w);
    }
  }
  plan.stage_bytes = power(chance, 8, 17);
  draw_stages(chance, {cluster.ring_bytes}, query, plan);
  if (cluster.lanes_end_at_nodes) draw_deliveries(cluster, plan);
  if (nodes.empty() && chance.one_in(12)) {
    const std::vector<uint32_t>& senders = plan.stages[0].senders;
    plan.cancelled_by = senders[chance.below(senders.size())];
  }
  return plan;
}

}  // namespace faro::soak
