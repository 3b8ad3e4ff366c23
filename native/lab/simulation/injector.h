// Injector: makes the faults of a plan happen while its queries run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lab/simulation/cluster.h"
#include "lab/simulation/ledger.h"
#include "lab/simulation/run_plan.h"
#include "lab/simulation/sim_spill_file.h"

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
  /// What opening answered on nodes that died and started again while the others went on.
  const std::map<uint32_t, Status>& returned() const { return returned_; }
  /// Starts that ended in death.
  uint32_t deaths_on_return() const { return deaths_on_return_; }

 private:
  void happen(const Fault& fault);
  bool cancel(const Fault& fault);
  void cut(const Fault& fault);
  void cancel_what_concerns(const Fault& fault);
  void lie(const Fault& fault);
  void kill(const Fault& fault);
  /// A worker of a query does nothing for it from now on.
  void stops_short(Ledger::QueryRecord& record, uint32_t worker);
  /// In a fiber: the node's programs end, then what it had.
  void bury(uint32_t node);
  /// In a fiber: the node's programs end, then what it had, and then it comes back.
  void resurrect(const Fault& fault);

  Cluster& cluster_;
  const RunPlan& plan_;
  Ledger& ledger_;
  std::vector<SimDisk>& disks_;
  bool over_ = false;
  std::vector<Fault> happened_;
  std::set<uint32_t> dead_;  // nodes
  std::map<uint32_t, Status> returned_;
  uint32_t deaths_on_return_ = 0;
};

}  // namespace faro::simulation
