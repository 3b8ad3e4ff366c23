// ChurnPlan: what a seed decides about a run of sessions that change before anything runs; what happens then is drawn as it goes
// (coordinator.h). README.md states the distribution.
#pragma once

#include <cstdint>
#include <string>

#include "lab/simulation/run_plan.h"

namespace faro::simulation {

/// The nodes that a session's list names when it opens, beside its own.
enum class StartList : uint8_t { all, some, own };
inline constexpr uint32_t kStartLists = 3;
const char* start_list_name(StartList list) noexcept;

struct ChurnPlan {
  /// Settings, rings and knobs, the workers of every number, and the queries, which are added as they begin.
  RunPlan run;
  uint32_t founders = 2;  // sessions that open at the beginning, with the first numbers
  StartList start_list = StartList::all;
  bool waits = true;      // founders wait for those in their lists
  uint32_t steps = 8;     // things that happen, one after the other
  uint32_t narrow = 0;    // links for which the founders have memory; 0: no limit
  uint32_t idle_ms = 0;   // after which links are let go; 0: never
  uint32_t latest = 20;   // an order takes less than 2^this ns on its way, mostly far less
  uint32_t longest = 20;  // pauses between steps, in the same way

  uint32_t number_limit() const { return run.node_count(); }
};

/// Whether the runs of a seed are of this kind.
bool has_churn(uint64_t seed);

/// Draws a plan, which depends on the seed alone, everywhere.
ChurnPlan draw_churn_plan(uint64_t seed);

/// In a few lines, for whoever looks into a run.
std::string describe(const ChurnPlan& plan);

}  // namespace faro::simulation
