#include "sim/send_path/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/programs/draw.h"

namespace faro::send_path {
namespace {

using programs::one_of;

std::vector<uint32_t> draw_workers(Chance& chance, uint32_t count) {
  std::vector<uint32_t> workers;
  for (uint32_t w = 0; w < count; ++w) {
    if (chance.below(3) != 0) workers.push_back(w);
  }
  if (workers.empty()) workers.push_back(static_cast<uint32_t>(chance.below(count)));
  for (size_t i = workers.size(); i > 1; --i) std::swap(workers[i - 1], workers[chance.below(i)]);
  return workers;
}

uint32_t draw_width(Chance& chance, const NodeSettings& settings) {
  const uint32_t frame = settings.row_limit_of_frame();
  switch (chance.below(10)) {
    case 0:
    case 1:
      return one_of<uint32_t>(chance, {8, 24, 100});  // the typed path
    case 2:
      return one_of<uint32_t>(chance, {1, 3, 16, 64, 200});
    case 3:
      return frame - 1 +
             static_cast<uint32_t>(chance.below(3));  // the largest in a frame, and one more
    case 4:
      return static_cast<uint32_t>(chance.between(frame / 2, 3 * frame));
    default:
      return 0;
  }
}

StagePlan draw_stage(Chance& chance, const Plan& plan) {
  StagePlan stage;
  stage.row_bytes = draw_width(chance, plan.settings);
  stage.senders = draw_workers(chance, plan.worker_count());
  stage.receivers = draw_workers(chance, plan.worker_count());
  if (chance.one_in(4)) stage.format = std::string(chance.between(1, 40), 'f');
  return stage;
}

NodeSettings draw_settings(Chance& chance) {
  NodeSettings settings;
  settings.ring_bytes = one_of<uint32_t>(chance, {4096, 4096, 4096, 8192, 16384, 65536});
  settings.rings_per_lane = one_of<uint32_t>(chance, {1, 1, 2, 3});
  const uint32_t ring = settings.ring_bytes;
  settings.threshold = one_of<uint64_t>(chance, {0, 64, ring / 8, ring / 4, ring / 2, ring / 2});
  settings.overflow_memory =
      one_of<uint64_t>(chance, {0, ring, 4 * ring, 1 << 20, 1 << 20, 1 << 20});
  settings.overflow_file = one_of<uint64_t>(chance, {0, 8 * ring, 1 << 22, 1 << 22});
  if (chance.one_in(8)) {  // all of it is soon used
    settings.overflow_memory = chance.between(256, ring);
    settings.overflow_file = 0;
  }
  settings.query_limit = chance.one_in(6) ? chance.between(512, 8 * ring) : 0;
  settings.row_limit = one_of<uint64_t>(chance, {4 * ring, 4 * ring, 1 << 20});
  settings.shuffle_limit = chance.one_in(8) ? 4 : 64;
  settings.drain_delay_us = one_of<uint32_t>(chance, {0, 1, 100, 1000});
  settings.wait_yields = one_of<uint32_t>(chance, {0, 1, 4});
  return settings;
}

Mood draw_mood(Chance& chance) {
  Mood mood;
  switch (chance.below(6)) {
    case 0:  // rings fill
      mood.receive = 1;
      mood.many = 8;
      break;
    case 1:  // batches are held all the time
      mood.keep = 12;
      mood.receive = 8;
      mood.many = 8;
      break;
    case 2:  // in place
      mood.claim = 16;
      mood.keep = 6;
      break;
    case 3:
      mood.several = 12;
      mood.many = 6;
      break;
    case 4:
      mood.trouble = 4;
      break;
    default:
      break;
  }
  return mood;
}

}  // namespace

Plan draw_plan(uint64_t seed) {
  Chance chance(workload::mix(seed, 0x53454e44));
  Plan plan;
  plan.seed = seed;
  plan.nodes = one_of<uint32_t>(chance, {1, 2, 2, 2, 3});
  plan.workers_per_node = plan.nodes == 1 ? 2 : one_of<uint32_t>(chance, {1, 1, 2});
  plan.settings = draw_settings(chance);
  plan.delivery = one_of(chance, {Delivery::shared, Delivery::told, Delivery::batched});
  plan.changing = chance.one_in(5);
  const uint64_t queries = chance.between(1, 3);
  plan.at_once = static_cast<uint32_t>(chance.between(1, 2));
  for (uint64_t q = 0; q < queries; ++q) {
    QueryPlan query;
    query.issuer = static_cast<uint32_t>(chance.below(plan.nodes));
    query.opens_late = chance.one_in(4);
    const uint64_t stages = chance.between(1, 3);
    for (uint64_t s = 0; s < stages; ++s) query.stages.push_back(draw_stage(chance, plan));
    plan.queries.push_back(std::move(query));
  }
  plan.calls = static_cast<uint32_t>(chance.between(20, 140));
  plan.mood = draw_mood(chance);
  plan.ends_in_order = !chance.one_in(8);
  return plan;
}

std::string NodeSettings::to_string() const {
  return fmt::format(
      "rings of {} bytes, {} per lane, threshold {}, overflow {} + {} (a query {}), rows up to {}, "
      "{} shuffles, drain {} us, {} yields",
      ring_bytes, rings_per_lane, threshold, overflow_memory, overflow_file, query_limit, row_limit,
      shuffle_limit, drain_delay_us, wait_yields);
}

std::string Plan::to_string() const {
  static constexpr const char* kDeliveries[] = {"shared", "told", "batched"};
  std::string text =
      fmt::format("program {}: {} nodes of {} workers, {}, {}{}, {} calls\n", seed, nodes,
                  workers_per_node, settings.to_string(), kDeliveries[static_cast<int>(delivery)],
                  changing ? ", nodes change" : "", calls);
  for (size_t q = 0; q < queries.size(); ++q) {
    text += fmt::format("  query {} of node {}{}\n", q, queries[q].issuer,
                        queries[q].opens_late ? ", opened late" : "");
    for (size_t s = 0; s < queries[q].stages.size(); ++s) {
      const StagePlan& stage = queries[q].stages[s];
      text += fmt::format("    stage {}: rows of {} bytes from {} to {}\n", s, stage.row_bytes,
                          stage.senders, stage.receivers);
    }
  }
  return text;
}

}  // namespace faro::send_path
