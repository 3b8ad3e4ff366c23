#include "round_plan.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "chance.h"

namespace outside {
namespace {

constexpr const char* kSpreadNames[] = {"repartition", "one key", "multicast", "broadcast"};
constexpr const char* kLaneEnds[] = {"workers", "node", "both"};
constexpr const char* kTroubleNames[] = {"", "cancels its shuffle", "cancels the query",
                                         "closes early", "fails"};

std::string join(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (const uint32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

class Drawing {
 public:
  explicit Drawing(uint64_t seed) : chance_(mix(seed, 0x726f756e64)) { plan_.seed = seed; }

  RoundPlan draw() {
    plan_.scarce = chance_.one_in(5);
    draw_cluster();
    draw_settings();
    const uint64_t queries = chance_.one_in(3) ? 1 : chance_.between(2, 5);
    for (uint32_t q = 0; q < queries; ++q) plan_.queries.push_back(draw_query(q));
    if (chance_.one_in(4)) draw_kills();
    // A node that has ended a query that failed may leave before others have begun it, and they
    // then know no other cause than that; so may an issuer that takes no part.
    plan_.all_close =
        chance_.one_in(2) || plan_.scarce || !plan_.kills.empty() ||
        std::any_of(plan_.queries.begin(), plan_.queries.end(), [this](const QueryPlan& query) {
          return query.trouble != Trouble::none || !plan_.takes_part(query, query.issuer);
        });
    return std::move(plan_);
  }

 private:
  void draw_cluster() {
    plan_.workers_per_node.resize(chance_.between(1, 4));
    for (uint32_t& workers : plan_.workers_per_node)
      workers = static_cast<uint32_t>(chance_.between(1, 3));
    plan_.ring_bytes = uint64_t{4096} << std::min(chance_.below(5), chance_.below(5));
    lane_ends_ = chance_.one_of<uint64_t>({0, 0, 1, 2});
  }

  void draw_settings() {
    const auto set = [this](const char* name, uint64_t value) {
      plan_.settings.emplace_back(name, std::to_string(value));
    };
    if (chance_.one_in(2)) plan_.settings.emplace_back("transport", "tcp");
    if (chance_.one_in(3)) {
      for (uint64_t i = 0; i < 4; ++i) plan_.secret += std::to_string(mix(plan_.seed, i));
    }
    plan_.settings.emplace_back("lane.ends", kLaneEnds[lane_ends_]);
    set("ring.bytes", plan_.ring_bytes);
    set("ring.per_lane", chance_.between(1, 3));
    set("transfer.threshold_bytes",
        chance_.one_in(3) ? 0 : chance_.below(plan_.ring_bytes / 2 + 1));
    set("wait.yields", chance_.one_of<uint64_t>({0, 1, 20, 20}));
    set("drain.delay_us", chance_.one_of<uint64_t>({0, 100, 1000, 1000}));
    if (plan_.scarce) {
      set("overflow.memory_bytes", chance_.between(2 * plan_.ring_bytes, 16 * plan_.ring_bytes));
      set("overflow.file_bytes", chance_.one_in(2) ? 0 : chance_.below(64 << 10));
    } else {
      set("overflow.memory_bytes", chance_.one_of<uint64_t>({0, 4096, 64 << 10, 64 << 20}));
    }
    set("connect.timeout_ms", 20'000);
    set("close.timeout_ms", 5'000);
    draw_schedule();
  }
  // With numbers of its own: all else of the rounds of older seeds stays as it was.
  void draw_schedule() {
    constexpr const char* kTurnBytes[] = {"1", "4096", "65536", "1073741824"};
    constexpr const char* kTurnMs[] = {"1", "10", "200"};
    if (mix(plan_.seed, 4) % 2 == 0) return;
    plan_.settings.insert(plan_.settings.end(),
                          {{"network.schedule", "phases"},
                           {"network.schedule_from", "1"},
                           {"network.turn_bytes", kTurnBytes[mix(plan_.seed, 5) % 4]},
                           {"network.turn_ms", kTurnMs[mix(plan_.seed, 6) % 3]}});
  }

  std::vector<uint32_t> some_of(const std::vector<uint32_t>& workers) {
    if (chance_.one_in(2)) return workers;
    std::vector<uint32_t> some;
    for (const uint32_t worker : workers) {
      if (chance_.one_in(2)) some.push_back(worker);
    }
    if (some.empty()) some.push_back(workers[chance_.below(workers.size())]);
    std::swap(some.front(), some[chance_.below(some.size())]);  // receivers are numbered by place
    return some;
  }

  QueryPlan draw_query(uint32_t index) {
    QueryPlan query;
    std::vector<uint32_t> all(plan_.worker_count());
    std::iota(all.begin(), all.end(), 0u);
    query.issuer = static_cast<uint32_t>(chance_.below(plan_.node_count()));
    query.workers = some_of(all);
    std::sort(query.workers.begin(), query.workers.end());
    query.stops = chance_.one_in(4);
    query.stages.resize(chance_.between(1, 4));
    for (uint32_t s = 0; s < query.stages.size(); ++s) draw_stage(query, index, s);
    if (chance_.one_in(5)) {
      query.trouble = static_cast<Trouble>(chance_.between(1, 4));
      query.trouble_worker = query.workers[chance_.below(query.workers.size())];
      query.trouble_after = chance_.below(uint64_t{1} << chance_.between(0, 10));
    }
    return query;
  }

  void draw_stage(QueryPlan& query, uint32_t index, uint32_t number) {
    StagePlan& stage = query.stages[number];
    stage.query = index;
    stage.number = number;
    stage.spread = static_cast<Spread>(chance_.below(4));
    stage.senders = some_of(query.workers);
    stage.receivers = chance_.one_in(5)
                          ? std::vector{query.workers[chance_.below(query.workers.size())]}
                          : some_of(query.workers);
    if (lane_ends_ != 0) stage.delivery = static_cast<faro::Delivery>(chance_.below(3));
    number_receivers(stage);
    const uint64_t ring = plan_.ring_bytes;
    const uint64_t width_of_rows = chance_.below(8);
    if (width_of_rows == 0) stage.row_bytes = 8;
    if (width_of_rows == 1) stage.row_bytes = 24;
    if (width_of_rows == 2 || width_of_rows == 3)
      stage.row_bytes = static_cast<uint32_t>(chance_.between(1, 200));
    if (width_of_rows == 4) {  // around a frame, or far above a ring
      stage.row_bytes =
          static_cast<uint32_t>(chance_.one_in(2) ? chance_.between(ring / 4 - 64, ring / 4 + 64)
                                                  : chance_.between(ring / 4, 3 * ring));
    }
    if (width_of_rows == 5) stage.most_bytes = 60;
    if (width_of_rows == 6) stage.most_bytes = 1500;
    if (width_of_rows == 7) stage.most_bytes = static_cast<uint32_t>(2 * ring);
    const uint64_t bytes = chance_.one_in(16) ? 8 << 20 : 256 << 10;  // of a sender, at most
    const uint64_t width = stage.row_bytes != 0 ? stage.row_bytes : stage.most_bytes / 2;
    uint64_t copies = 1;
    if (stage.spread == Spread::multicast || stage.spread == Spread::broadcast ||
        stage.delivery == faro::Delivery::replicate)
      copies = stage.receivers.size();
    stage.most_rows = chance_.below(bytes / std::max<uint64_t>(width, 16) / copies + 2);
  }

  void number_receivers(StagePlan& stage) {
    std::map<uint32_t, uint32_t> place_of_node;
    for (const uint32_t worker : stage.receivers) {
      const auto next = static_cast<uint32_t>(place_of_node.size());
      const uint32_t place = place_of_node.emplace(plan_.node_of(worker), next).first->second;
      const auto number = static_cast<uint32_t>(stage.places.size());
      stage.places[worker] = stage.delivery == faro::Delivery::worker ? number
                             : stage.delivery == faro::Delivery::node ? place
                                                                      : 0;
      stage.place_count = std::max(stage.place_count, stage.places[worker] + 1);
    }
  }

  void draw_kills() {
    if (plan_.node_count() < 2) return;
    for (uint64_t count = chance_.one_in(4) ? 2 : 1; count > 0; --count) {
      Kill kill;
      kill.node = static_cast<uint32_t>(chance_.below(plan_.node_count()));
      kill.after_us = chance_.below(uint64_t{1} << chance_.between(4, 18));
      plan_.kills.push_back(kill);
    }
  }

  Chance chance_;
  RoundPlan plan_;
  uint64_t lane_ends_ = 0;
};

}  // namespace

uint32_t RoundPlan::worker_count() const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.end(), 0u);
}

uint32_t RoundPlan::node_of(uint32_t worker) const {
  uint32_t node = 0;
  while (worker >= workers_per_node[node]) worker -= workers_per_node[node++];
  return node;
}

uint32_t RoundPlan::first_worker(uint32_t node) const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.begin() + node, 0u);
}

bool RoundPlan::takes_part(const QueryPlan& query, uint32_t node) const {
  return std::any_of(query.workers.begin(), query.workers.end(),
                     [&](uint32_t worker) { return node_of(worker) == node; });
}

RoundPlan draw_round(uint64_t seed) { return Drawing(seed).draw(); }

std::string reason_of_trouble(uint32_t query) {
  return "query " + std::to_string(query) + " is not wanted";
}

std::string describe(const RoundPlan& plan) {
  std::ostringstream text;
  text << "  workers " << join(plan.workers_per_node) << (plan.scarce ? ", scarce" : "")
       << (plan.secret.empty() ? "" : ", secret") << "\n  ";
  for (const auto& [name, value] : plan.settings) text << name << "=" << value << " ";
  text << "\n";
  for (size_t q = 0; q < plan.queries.size(); ++q) {
    const QueryPlan& query = plan.queries[q];
    text << "  query " << q << " of node " << query.issuer << ": workers " << join(query.workers)
         << (query.stops ? ", stops" : "");
    if (query.trouble != Trouble::none) {
      text << ", worker " << query.trouble_worker << " "
           << kTroubleNames[static_cast<size_t>(query.trouble)] << " after " << query.trouble_after;
    }
    text << "\n";
    for (const StagePlan& stage : query.stages) {
      text << "    stage " << stage.number << ": "
           << kSpreadNames[static_cast<size_t>(stage.spread)] << ", rows of "
           << (stage.row_bytes == 0 ? "0 to " : "") << std::max(stage.row_bytes, stage.most_bytes)
           << ", at most " << stage.most_rows << ", from " << join(stage.senders) << " to "
           << join(stage.receivers) << ", delivery " << to_string(stage.delivery) << "\n";
    }
  }
  for (const Kill& kill : plan.kills)
    text << "  node " << kill.node << " is killed after " << kill.after_us << " us\n";
  return text.str();
}

}  // namespace outside
