#include "sim/node_state/plan.h"

#include <fmt/format.h>

namespace faro::node_state {
namespace {

using programs::one_of;

Mood draw_mood(Chance& chance, bool changing) {
  Mood mood;
  if (!changing) mood.change = 0;
  switch (chance.below(6)) {
    case 0:  // nodes come and go
      mood.life = 4;
      mood.change *= 3;
      break;
    case 1:
      mood.trouble = 10;
      break;
    case 2:  // links rest
      mood.query = 4;
      mood.run = 40;
      break;
    case 3:  // much is under way at a time
      mood.query = 20;
      mood.run = 6;
      break;
    case 4:
      mood.mistake = 12;
      break;
    default:
      break;
  }
  return mood;
}

}  // namespace

Plan draw_plan(uint64_t seed) {
  Chance chance(workload::mix(seed, 0x4e4f4445));
  Plan plan;
  plan.seed = seed;
  plan.changing = !chance.one_in(3);
  plan.numbers = static_cast<uint32_t>(chance.between(2, 5));
  plan.founders = plan.numbers;
  if (plan.changing && !chance.one_in(4))
    plan.founders = static_cast<uint32_t>(chance.between(1, plan.numbers));
  plan.workers_per_node = one_of<uint32_t>(chance, {1, 1, 2});
  plan.waits = chance.one_in(2);
  plan.delivery = one_of(chance, {Delivery::shared, Delivery::told, Delivery::told});
  plan.mend_ms = one_of<uint64_t>(chance, {0, 600, 600});
  if (plan.changing) plan.idle_ms = one_of<uint64_t>(chance, {0, 1, 200, 1500});
  if (chance.one_in(5)) {
    plan.poor = static_cast<uint32_t>(chance.below(plan.numbers));
    plan.poor_bytes = plan.workers_per_node * chance.between(45'000, 120'000);
  }
  plan.calls = static_cast<uint32_t>(chance.between(40, 250));
  plan.mood = draw_mood(chance, plan.changing);
  return plan;
}

std::string Plan::to_string() const {
  static constexpr const char* kDeliveries[] = {"shared", "told", "batched"};
  return fmt::format(
      "program {}: {} numbers of {} workers, {}, {} nodes at the beginning, {}; {}, mended for {} "
      "ms, idle for {} ms{}; {} calls\n",
      seed, numbers, workers_per_node, changing ? "nodes change" : "a fixed list", founders,
      waits ? "which wait for all" : "which wait for none", kDeliveries[static_cast<int>(delivery)],
      mend_ms, idle_ms, poor ? fmt::format(", node {} has {} bytes", *poor, poor_bytes) : "",
      calls);
}

}  // namespace faro::node_state
