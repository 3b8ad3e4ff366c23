// Checker: what has to hold when the queries of a run have ended. That rows arrive once, whole and in
// order is checked where they arrive (lab/workload/row_checker.h); that waits end, by the world's limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/simulation/cluster.h"
#include "lab/simulation/ledger.h"
#include "lab/simulation/run_plan.h"
#include "lab/simulation/sim_spill_file.h"
#include "node/node_core.h"

namespace faro::simulation {

/// Whether a cause says the node's number.
bool names_node(const Status& cause, uint32_t node);

/// Threads: its world's. Every check answers the first thing that is wrong, or nothing.
class Checker {
 public:
  Checker(const RunPlan& plan, const Ledger& ledger, const std::vector<Fault>& happened);

  /// Nodes whose process and links had nothing that could cost them a peer: the others have to tell
  /// them the truth, and they have to go on.
  const std::vector<bool>& sound() const { return sound_; }
  /// Whether every node can reach every other one that is there, now that the faults are over: then
  /// a node that started again has to have been let in.
  bool all_within_reach() const;

  /// Every worker knows how the query ended: with data, or with an error for which there was a reason;
  /// and all sound nodes know the same.
  std::string check_query(uint32_t index) const;
  /// What check_query says, for a query that began after all faults, on sound nodes only.
  std::string check_later_query(uint32_t index) const;

  /// A node that has nothing to do keeps nothing: no overflow, no open shuffle, no query. And it never
  /// took more than it was given.
  std::string check_idle(uint32_t node, Session& session, const SimDisk& disk) const;
  /// A node that all others reach and that has nothing to do knows which nodes have returned, and
  /// once its workers have looked again it keeps nothing of nodes that are gone.
  std::string check_links(uint32_t node, Session& session, const std::vector<bool>& returned) const;

 private:
  bool closed_by_who_opened_otherwise(const Fault& fault, const Status& cause) const;
  bool is_excused(const QueryPlan& query, const Status& cause) const;
  static std::optional<uint32_t> told_of_a_close_only(const Ledger::QueryRecord& record,
                                                      const Ending& ending);
  bool lies(uint32_t node) const;
  std::string check_handed_out(uint32_t index) const;
  std::string check_handed_out(uint32_t index, const StagePlan& stage, uint32_t receiver) const;
  uint64_t never_ended_by_others(node::NodeCore& core) const;

  const RunPlan& plan_;
  const Ledger& ledger_;
  const std::vector<Fault>& happened_;
  std::vector<bool> sound_;
};

}  // namespace faro::simulation
