#include "lab/simulation/scene.h"

#include <fmt/format.h>

namespace faro::simulation {

Scene::Scene(sim::World& in_world, const sim::SimFaults& with_faults, const RunPlan& of_plan,
             Ledger& to_ledger, Session& of_session, uint32_t local_worker, uint64_t chance_seed)
    : Participant(of_session.worker(local_worker), chance_seed, of_plan.ring_bytes,
                  to_ledger.happened),
      world(in_world),
      faults(with_faults),
      plan(of_plan),
      ledger(to_ledger),
      session(of_session),
      node(of_session.node()) {
  is_tight = plan.is_tight;
  has_time_limits = true;
}

bool Scene::is_trusted(uint32_t sender) const {
  return !faults.distrusted(plan.node_of(sender), node);
}

void Scene::doing(workload::Step, const StagePlan& stage, uint32_t) {
  const std::pair now(stage.query, stage.stage);
  if (std::exchange(noted_, now) == now) return;
  world.note(fmt::format("query {} stage {}", stage.query, stage.stage));
}

bool Scene::takes_row(const StagePlan& stage, uint32_t sender, uint64_t row) {
  return ledger.queries[stage.query].handed_out[{stage.stage, node, sender}].insert(row).second;
}

void Scene::stops(const StagePlan& stage) {
  ledger.queries[stage.query].stopped.emplace(stage.stage, me);
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
