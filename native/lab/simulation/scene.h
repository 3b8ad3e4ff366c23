// Scene: what a worker's program has around it in a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lab/simulation/ledger.h"
#include "lab/simulation/run_plan.h"
#include "lab/simulation/transport/sim_faults.h"
#include "lab/simulation/transport/sim_world.h"
#include "lab/workload/participant.h"

namespace faro::simulation {

/// Threads: its fiber.
class Scene final : public workload::Participant {
 public:
  /// `local_worker`: of the session.
  Scene(sim::World& in_world, const sim::SimFaults& with_faults, const RunPlan& of_plan,
        Ledger& to_ledger, Session& of_session, uint32_t local_worker, uint64_t chance_seed);

  void between() override { world.maybe_yield(); }
  void progress() override { world.note_progress(); }
  void broken(const std::string& what) override { world.violation(what); }
  /// Nothing hostile spoke for the sender.
  bool is_trusted(uint32_t sender) const override;
  /// Is noted at each new stage, for reports of a run that hangs.
  void doing(workload::Step step, const StagePlan& stage, uint32_t peer) override;
  bool takes_row(const StagePlan& stage, uint32_t sender, uint64_t row) override;
  void stops(const StagePlan& stage) override;
  void tell_rows_made(const StagePlan& stage, uint64_t rows) override;
  std::optional<uint64_t> rows_made(const StagePlan& stage, uint32_t sender) const override;

  sim::World& world;
  const sim::SimFaults& faults;
  const RunPlan& plan;
  Ledger& ledger;
  Session& session;
  const uint32_t node;

 private:
  std::pair<uint32_t, uint32_t> noted_{UINT32_MAX, UINT32_MAX};  // query and stage
};

}  // namespace faro::simulation
