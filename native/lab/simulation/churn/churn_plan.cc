#include "lab/simulation/churn/churn_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace faro::simulation {
namespace {

constexpr const char* kListNames[] = {"all", "some", "itself"};
static_assert(std::size(kListNames) == kStartLists);

}  // namespace

const char* start_list_name(StartList list) noexcept {
  return kListNames[static_cast<size_t>(list)];
}

bool has_churn(uint64_t seed) { return mix(seed, 0x636875726e) % 4 == 0; }

ChurnPlan draw_churn_plan(uint64_t seed) {
  Chance chance(mix(seed, 0x6e6f646573));
  ChurnPlan plan;
  // What a run of a fixed list would be, except its nodes, queries and faults.
  plan.run = draw_plan(seed);
  plan.run.queries.clear();
  plan.run.faults.clear();
  plan.run.is_tight = false;
  plan.run.knobs.one_sender_at_a_time = false;
  plan.founders = static_cast<uint32_t>(chance.between(1, 4));
  const auto numbers = plan.founders + static_cast<uint32_t>(chance.between(1, 4));
  const auto workers = static_cast<uint32_t>(chance.one_in(4) ? 2 : 1);
  plan.run.workers_per_node.assign(numbers, workers);
  plan.start_list = static_cast<StartList>(chance.below(kStartLists));
  plan.narrow = chance.one_in(6) ? static_cast<uint32_t>(chance.between(2, 3)) : 0;
  // Two that know some of the others each may wait for each other, through those who know neither.
  plan.waits = plan.narrow == 0 && plan.start_list != StartList::some && chance.one_in(2);
  plan.steps = static_cast<uint32_t>(chance.between(4, 24));
  plan.latest = static_cast<uint32_t>(chance.between(10, 25));
  plan.longest = static_cast<uint32_t>(chance.between(17, 27));

  const auto set = [&plan](const char* name, uint64_t value) {
    plan.run.settings.emplace_back(name, std::to_string(value));
  };
  plan.run.ring_bytes = uint64_t{4096} << std::min(chance.below(4), chance.below(4));
  set("ring.bytes", plan.run.ring_bytes);
  set("transfer.threshold_bytes", chance.one_in(4) ? 0 : chance.below(plan.run.ring_bytes / 2 + 1));
  constexpr uint64_t kOverflow[] = {0, 4096, 64 << 10, 1 << 20};
  plan.run.overflow_memory_bytes = kOverflow[chance.below(std::size(kOverflow))];
  set("overflow.memory_bytes", plan.run.overflow_memory_bytes);
  plan.run.disk_bytes = UINT64_MAX;
  set("cluster.node_limit", numbers);
  set("cluster.workers", workers);
  set("link.mend_ms", 20'000);
  plan.idle_ms = static_cast<uint32_t>(chance.one_in(2) ? 0 : chance.between(1, 50));
  set("link.idle_ms", plan.idle_ms);
  if (plan.idle_ms != 0) plan.longest += 4;  // idleness is seen from one heartbeat to the next
  return plan;
}

std::string describe(const ChurnPlan& plan) {
  return describe(plan.run) +
         fmt::format(
             "  a session that changes: {} of {} numbers at the beginning, lists of {}{}{}{}, {} "
             "steps\n",
             plan.founders, plan.number_limit(), start_list_name(plan.start_list),
             plan.waits ? ", which are waited for" : "",
             plan.narrow != 0 ? fmt::format(", memory for {} links", plan.narrow) : "",
             plan.idle_ms != 0 ? fmt::format(", links idle for {} ms", plan.idle_ms) : "",
             plan.steps);
}

}  // namespace faro::simulation
