#include "lab/simulation/scene.h"

#include <fmt/format.h>

namespace faro::simulation {

Scene::Scene(Cluster& in_cluster, const RunPlan& of_plan, Ledger& to_ledger, Worker& of_worker,
             uint32_t on_node, uint64_t chance_seed)
    : Participant(of_worker, chance_seed, of_plan.ring_bytes, to_ledger.happened),
      cluster(in_cluster),
      plan(of_plan),
      ledger(to_ledger),
      node(on_node) {
  is_tight = plan.is_tight;
  has_time_limits = true;
}

bool Scene::is_trusted(uint32_t sender) const {
  return !cluster.faults().distrusted(plan.node_of(sender), node);
}

void Scene::doing(workload::Step, const StagePlan& stage, uint32_t) {
  const std::pair now(stage.query, stage.stage);
  if (std::exchange(noted_, now) == now) return;
  world().note(fmt::format("query {} stage {}", stage.query, stage.stage));
}

void Scene::tell_rows_made(const StagePlan& stage, uint64_t rows) {
  ledger.queries[stage.query].rows_made[{stage.stage, me}] = rows;
}

std::optional<uint64_t> Scene::rows_made(const StagePlan& stage, uint32_t sender) const {
  const auto& rows_made = ledger.queries[stage.query].rows_made;
  const auto made = rows_made.find({stage.stage, sender});
  return made == rows_made.end() ? std::nullopt : std::optional(made->second);
}

}  // namespace faro::simulation
