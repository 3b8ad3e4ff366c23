// Injector: makes the faults of a plan happen while its queries run.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "simulation/cluster.h"
#include "simulation/ledger.h"
#include "simulation/run_plan.h"
#include "simulation/sim_spill_file.h"

namespace faro::simulation {

/// Threads: its world's.
class Injector {
 public:
  /// `disks`: one per node.
  Injector(Cluster& cluster, const RunPlan& plan, Ledger& ledger, std::vector<SimDisk>& disks);

  /// Each fault comes at its time from now on.
  void begin();
  /// What has not happened yet never does.
  void end() { over_ = true; }

  /// Those that happened.
  const std::vector<Fault>& happened() const { return happened_; }
  /// Of nodes that died and started again while the others went on: what opening answered.
  const std::vector<Status>& returned() const { return returned_; }

 private:
  void happen(const Fault& fault);
  bool cancel(const Fault& fault);
  void cancel_what_concerns(const Fault& fault);
  void lie(const Fault& fault);
  void kill(const Fault& fault);
  /// In a fiber: the node's programs end, then what it had; then it comes back.
  void bury(uint32_t node, bool comes_back);

  Cluster& cluster_;
  const RunPlan& plan_;
  Ledger& ledger_;
  std::vector<SimDisk>& disks_;
  bool over_ = false;
  std::vector<Fault> happened_;
  std::set<uint32_t> dead_;  // nodes
  std::vector<Status> returned_;
};

}  // namespace faro::simulation
