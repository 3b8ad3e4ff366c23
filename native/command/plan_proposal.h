// Proposes settings under which a node of a cluster takes no more than a budget.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command/plan.h"
#include "faro/config.h"
#include "faro/status.h"

namespace faro::command {

/// A setting that is proposed.
struct ProposedSetting {
  std::string name;
  std::string value;
  std::string before;
};

struct PlanProposal {
  Config config;                         ///< with the proposed settings
  std::vector<ProposedSetting> changes;  ///< none: the budget is kept without
  uint64_t budget_bytes = 0;
};

/// Looks for settings that keep the budget with all that queries may take; if none do, at open; and takes those that are nearest to what
/// `config` has. If none do even that, it takes those that need least. A setting that `config` has from elsewhere than its default
/// stays. Errors: config_invalid.
Result<PlanProposal> propose(const Config& config, const PlanInput& input, uint64_t budget_bytes);

}  // namespace faro::command
