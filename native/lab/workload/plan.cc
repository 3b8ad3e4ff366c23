#include "lab/workload/plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace faro::workload {
namespace {

void draw_row_size(Chance& chance, const Bounds& bounds, StagePlan& stage) {
  constexpr uint32_t kWidths[] = {1, 8, 13, 100, 1000, 1023, 1100};
  stage.least_bytes = 0;
  switch (bounds.is_tight ? 5 + std::min(chance.below(3), chance.below(3)) : chance.below(8)) {
    case 0:
    case 1:
      stage.row_bytes = 24;  // that of the typed path
      break;
    case 2:
      stage.row_bytes = kWidths[chance.below(std::size(kWidths))];
      break;
    case 3:
      stage.row_bytes = static_cast<uint32_t>(chance.between(1, 1100));
      break;
    case 4:
      stage.row_bytes = static_cast<uint32_t>(chance.between(1, 2 * bounds.ring_bytes));
      break;
    case 5:
      stage.most_bytes = 60;
      break;
    case 6:
      stage.most_bytes = chance.one_in(2) ? 1500 : static_cast<uint32_t>(chance.between(1, 1500));
      break;
    default:
      stage.most_bytes = static_cast<uint32_t>(3 * bounds.ring_bytes);
      break;
  }
}

// A receiver of several groups tells their rows apart by the first word. From the seed of the rows, so that other draws stay.
void draw_groups(uint64_t seed, StagePlan& stage) {
  if (stage.has_copies() || (stage.row_bytes != 0 && stage.row_bytes < sizeof(uint64_t))) return;
  stage.grouped = mix(seed, stage.query, stage.stage, 12) % 3 == 0;
  if (!stage.grouped || stage.row_bytes != 0) return;
  stage.least_bytes = std::max<uint32_t>(stage.least_bytes, sizeof(uint64_t));
  stage.most_bytes = std::max(stage.most_bytes, stage.least_bytes);
}

}  // namespace

const char* spread_name(const StagePlan& stage) noexcept {
  constexpr const char* kNames[] = {"repartition", "repartition by one key", "multicast",
                                    "broadcast"};
  return stage.receivers.size() == 1 ? "gather" : kNames[static_cast<uint32_t>(stage.spread)];
}

uint64_t QueryPlan::rows(const StagePlan& stage, uint32_t sender) const {
  const uint64_t width = stage.row_bytes != 0 ? stage.row_bytes : stage.most_bytes / 2;
  uint64_t most = stage_bytes / std::max<uint64_t>(width, 16);
  if (stage.has_copies() || stage.grouped || stage.delivery == Delivery::replicate)
    most /= stage.receivers.size();
  return mix(seed, stage.query, stage.stage, sender, 9) % (std::max<uint64_t>(2, most) + 1);
}

std::vector<uint32_t> some_of(Chance& chance, const std::vector<uint32_t>& workers) {
  if (chance.one_in(2)) return workers;
  std::vector<uint32_t> some;
  for (const uint32_t worker : workers) {
    if (chance.one_in(2)) some.push_back(worker);
  }
  if (some.empty()) some.push_back(workers[chance.below(workers.size())]);
  return some;
}

// Its receivers find out by a row itself which of its sender's it is.
void deliver_to_nodes(StagePlan& stage, const std::function<uint32_t(uint32_t)>& node_of) {
  constexpr uint32_t kLeastBytes = 24;
  stage.delivery = Delivery::node;
  stage.grouped = false;
  if (stage.row_bytes != 0) stage.row_bytes = std::max(stage.row_bytes, kLeastBytes);
  stage.least_bytes = kLeastBytes;
  stage.most_bytes = std::max(stage.most_bytes, kLeastBytes);
  std::vector<uint32_t> numbers;
  for (const uint32_t worker : stage.receivers) {
    const uint32_t node = node_of(worker);
    const auto at = std::ranges::find(numbers, node) - numbers.begin();
    if (static_cast<size_t>(at) == numbers.size()) {
      numbers.push_back(node);
      stage.nodes.emplace_back();
    }
    stage.nodes[static_cast<size_t>(at)].push_back(worker);
  }
}

void replicate(StagePlan& stage) {
  stage.delivery = Delivery::replicate;
  stage.grouped = false;
}

void draw_stages(Chance& chance, const Bounds& bounds, uint32_t number, QueryPlan& query) {
  const auto draw_side = [&](uint64_t one_in) {
    if (chance.one_in(one_in))
      return std::vector{query.workers[chance.below(query.workers.size())]};
    std::vector<uint32_t> side = some_of(chance, query.workers);
    // Any order: receivers are numbered by it.
    if (chance.one_in(2)) std::swap(side.front(), side.back());
    return side;
  };
  query.stages.resize(chance.between(1, 5));
  for (uint32_t s = 0; s < query.stages.size(); ++s) {
    StagePlan& stage = query.stages[s];
    stage.query = number;
    stage.stage = s;
    stage.spread = static_cast<Spread>(chance.below(bounds.is_tight && chance.one_in(2) ? 2 : 4));
    stage.senders = draw_side(bounds.is_tight ? 0 : 6);
    stage.receivers = draw_side(5);
    draw_row_size(chance, bounds, stage);
    draw_groups(query.seed, stage);
  }
}

}  // namespace faro::workload
