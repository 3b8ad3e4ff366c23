#include "lab/simulation/run_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace faro::simulation {
namespace {

constexpr const char* kFaultNames[] = {
    "cancel",       "short stall",      "long stall",       "short outage", "half-open link",
    "death",        "death and return", "hostile bytes",    "disk full",    "failing registration",
    "slow starter", "lying member",     "part that is bad", "cut",          "kept apart",
    "narrow path"};
static_assert(std::size(kFaultNames) == kFaultKinds);

// Rings of a run take at most so much memory in both directions; one run in 64 may take more. Clearing
// them is most of what a large cluster costs.
constexpr uint64_t kRingMemory = uint64_t{4} << 20;
constexpr uint64_t kLargeRingMemory = uint64_t{512} << 20;

// A turn that no node misses for being late: longer than a short stall or outage, and than all that waits for a step.
constexpr uint64_t kLongTurnMs = 1000;

/// Draws one plan; each part from the same sequence, in order.
class Drawing {
 public:
  explicit Drawing(uint64_t seed) : chance_(mix(seed, 0x706c616e)) { plan_.seed = seed; }

  RunPlan draw() {
    plan_.is_tight = chance_.one_in(6);
    draw_knobs();
    draw_cluster();
    draw_settings();
    const uint64_t queries = chance_.one_in(2) && !plan_.is_tight ? 1 : chance_.between(2, 5);
    for (uint32_t q = 0; q < queries; ++q) plan_.queries.push_back(draw_query(q));
    draw_faults();
    draw_mending();
    plan_.second_life = chance_.one_in(8);
    draw_ends();
    draw_turns();
    return std::move(plan_);
  }

 private:
  template <typename T, size_t n>
  T one_of(const T (&values)[n]) {
    return values[chance_.below(n)];
  }

  void draw_knobs() {
    plan_.knobs = simulation::draw_knobs(chance_);
    // Longer than a hostile issuer can keep a worker waiting: query.unopened_timeout_ms.
    plan_.knobs.stall_limit = 25'000 * base::kMillisecond;
  }

  void draw_cluster() {
    const uint64_t size = chance_.below(16);
    const uint64_t nodes = size < 9    ? chance_.between(2, 4)
                           : size < 14 ? chance_.between(5, 8)
                                       : chance_.between(9, 16);
    const bool large = chance_.one_in(64);
    const uint64_t most = large ? 8 : chance_.one_in(6) ? 4 : 2;
    plan_.workers_per_node.resize(nodes);
    for (uint32_t& workers : plan_.workers_per_node)
      workers = static_cast<uint32_t>(chance_.between(1, most));
    rings_ = chance_.between(1, 3);
    plan_.ring_bytes = uint64_t{4096} << std::min(chance_.below(6), chance_.below(6));
    const uint64_t limit = large ? kLargeRingMemory : kRingMemory;
    const auto memory = [&] {
      const uint64_t workers = plan_.worker_count();
      return 2 * workers * workers * rings_ * plan_.ring_bytes;
    };
    while (memory() > limit && plan_.ring_bytes > 4096) plan_.ring_bytes /= 2;
    while (memory() > limit && rings_ > 1) --rings_;
  }

  void draw_settings() {
    const auto set = [this](const char* name, uint64_t value) {
      plan_.settings.emplace_back(name, std::to_string(value));
    };
    set("ring.bytes", plan_.ring_bytes);
    set("ring.per_lane", rings_);
    set("transfer.threshold_bytes",
        chance_.one_in(4) ? 0 : chance_.below(plan_.ring_bytes / 2 + 1));
    plan_.wait_yields = one_of<uint64_t>({0, 1, 3, 20});
    set("wait.yields", plan_.wait_yields);
    // A doorbell that does not ring has to be seen as the deadlock it is.
    set("wait.sleep_ms", 10'000);
    set("drain.delay_us", chance_.one_in(4) ? 0 : chance_.between(1, 2000));
    plan_.overflow_memory_bytes = one_of<uint64_t>({0, 4096, 64 << 10, 1 << 20});
    plan_.disk_bytes = UINT64_MAX;
    if (chance_.one_in(12)) plan_.disk_bytes = chance_.between(0, 256 << 10);
    if (plan_.is_tight) {
      plan_.overflow_memory_bytes =
          chance_.between(plan_.ring_bytes, one_of({4, 8}) * plan_.ring_bytes);
      plan_.disk_bytes = 0;
    }
    set("overflow.memory_bytes", plan_.overflow_memory_bytes);
    const uint64_t liveness_ms = one_of({200, 400, 1000});
    plan_.liveness = liveness_ms * base::kMillisecond;
    // A heartbeat is late three times: when it is sent, on its way, and when it is read.
    plan_.knobs.late_most = plan_.liveness / 8;
    set("liveness.timeout_ms", liveness_ms);
    plan_.shuffle_limit = static_cast<uint32_t>(chance_.between(32, 64));
    set("shuffle.limit", plan_.shuffle_limit);
    set("query.unopened_timeout_ms", 20'000);
    set("connect.timeout_ms", 3'000);
    set("close.timeout_ms", 2'000);
  }

  QueryPlan draw_query(uint32_t index) {
    QueryPlan query;
    query.issuer = static_cast<uint32_t>(chance_.below(plan_.node_count()));
    std::vector<uint32_t> all(plan_.worker_count());
    std::iota(all.begin(), all.end(), 0u);
    query.seed = plan_.seed;
    query.workers = some_of(chance_, all);
    query.declared_early = chance_.one_in(2);
    query.stops_early = chance_.one_in(3);
    query.has_barrier = chance_.one_in(3);
    // Large clusters send less per worker, or their runs would take seconds.
    const uint64_t most = (chance_.one_in(32) ? 16 : 1) * (uint64_t{64} << 10);
    query.stage_bytes = chance_.between(256, std::max<uint64_t>(512, most / query.workers.size()));
    draw_stages(chance_, {plan_.ring_bytes, plan_.is_tight}, index, query);
    return query;
  }

  void draw_faults() {
    if (chance_.one_in(3)) return;
    for (uint64_t count = chance_.one_in(2) ? 1 : chance_.between(2, 4); count > 0; --count) {
      Fault fault;
      fault.kind = static_cast<FaultKind>(chance_.below(kFaultKinds));
      // Over several orders of magnitude: the beginning of a run, its middle, its end.
      fault.at = chance_.below(uint64_t{1} << chance_.between(10, 25));
      fault.node = static_cast<uint32_t>(chance_.below(plan_.node_count()));
      fault.peer = static_cast<uint32_t>(chance_.below(plan_.node_count() - 1));
      fault.peer += fault.peer >= fault.node;
      fault.query = static_cast<uint32_t>(chance_.below(plan_.queries.size()));
      fault.way = static_cast<uint32_t>(chance_.below(3));
      if (chance_.one_in(6)) fault.kind = FaultKind::cut;
      fault.count = static_cast<uint32_t>(chance_.between(1, 8));
      const base::Nanoseconds limit = plan_.liveness;
      switch (fault.kind) {
        case FaultKind::short_stall:
        case FaultKind::short_outage:
          fault.lasting = chance_.between(1, limit / 4);
          break;
        case FaultKind::long_stall:
        case FaultKind::half_open:
          fault.lasting = chance_.between(2 * limit, 3 * limit);
          break;
        case FaultKind::lies:
          if (chance_.one_in(2)) fault.at = 0;
          break;
        case FaultKind::slow_start:
          fault.lasting = chance_.between(1, 500 * base::kMillisecond);
          break;
        case FaultKind::death_return:
          fault.lasting = chance_.below(uint64_t{1} << chance_.between(10, 25));
          break;
        case FaultKind::narrow:
          fault.lasting =
              chance_.one_in(2) ? 60'000 * base::kMillisecond : chance_.between(limit, 12 * limit);
          break;
        case FaultKind::apart:
          fault.lasting = chance_.between(3'000 * base::kMillisecond, 4'000 * base::kMillisecond);
          break;
        default:
          break;
      }
      plan_.faults.push_back(fault);
    }
  }

  // Far longer than mending takes, however often it is cut again; or less than nodes are kept apart. Then nothing else is cut.
  void draw_mending() {
    const bool are_apart = plan_.has(FaultKind::apart);
    plan_.settings.emplace_back("link.mend_ms", are_apart ? "2000" : "60000");
    plan_.knobs.rings_stand = chance_.one_in(3);
    if (are_apart)
      std::erase_if(plan_.faults, [](const Fault& each) { return each.kind == FaultKind::cut; });
  }

  // Apart from the rest, which is drawn alike whatever this is.
  void draw_ends() {
    Chance chance(mix(plan_.seed, 0x656e6473));
    if (!chance.one_in(3)) return;
    plan_.settings.emplace_back("lane.ends", chance.one_in(2) ? "node" : "both");
    plan_.lanes_end_at_nodes = true;
    for (QueryPlan& query : plan_.queries) draw_deliveries(chance, plan_, query);
  }

  // Apart from the rest, too.
  void draw_turns() {
    Chance chance(mix(plan_.seed, 0x7475726e));
    if (!chance.one_in(2)) return;
    plan_.has_turns = true;
    constexpr uint64_t kTurnBytes[] = {64, 4096, 64 << 10, 4 << 20};
    const uint64_t turn_bytes = kTurnBytes[chance.below(std::size(kTurnBytes))];
    const uint64_t from =
        chance.one_in(2) ? 1 : chance.between(1, std::min<uint64_t>(turn_bytes, 16 << 10));
    constexpr uint64_t kTurnMs[] = {1, 10, kLongTurnMs};
    const uint64_t turn_ms = kTurnMs[chance.below(std::size(kTurnMs))];
    plan_.settings.emplace_back("network.schedule", "phases");
    plan_.settings.emplace_back("network.turn_bytes", std::to_string(turn_bytes));
    plan_.settings.emplace_back("network.schedule_from", std::to_string(from));
    plan_.settings.emplace_back("network.turn_ms", std::to_string(turn_ms));
    plan_.knobs.one_sender_at_a_time =
        turn_ms == kLongTurnMs &&
        std::none_of(plan_.faults.begin(), plan_.faults.end(), passes_turns_over);
  }

  // Whether somebody may go on without a node, or a link, that has its turn.
  static bool passes_turns_over(const Fault& fault) {
    switch (fault.kind) {
      case FaultKind::cancel:
      case FaultKind::short_stall:
      case FaultKind::short_outage:
      case FaultKind::disk_full:
      case FaultKind::registration:
      case FaultKind::slow_start:
      case FaultKind::bad_part:
        return false;
      default:
        return true;
    }
  }

  Chance chance_;
  RunPlan plan_;
  uint64_t rings_ = 1;
};

}  // namespace

const char* fault_name(FaultKind kind) noexcept { return kFaultNames[static_cast<size_t>(kind)]; }

uint32_t RunPlan::worker_count() const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.end(), 0u);
}

uint32_t RunPlan::node_of(uint32_t worker) const {
  uint32_t node = 0;
  while (worker >= workers_per_node[node]) worker -= workers_per_node[node++];
  return node;
}

uint32_t RunPlan::first_worker(uint32_t node) const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.begin() + node, 0u);
}

bool RunPlan::takes_part(const QueryPlan& query, uint32_t node) const {
  return std::any_of(query.workers.begin(), query.workers.end(),
                     [&](uint32_t worker) { return node_of(worker) == node; });
}

bool RunPlan::concerns(const QueryPlan& query, uint32_t node) const {
  return query.issuer == node || takes_part(query, node);
}

bool RunPlan::has(FaultKind kind) const {
  return std::any_of(faults.begin(), faults.end(),
                     [kind](const Fault& fault) { return fault.kind == kind; });
}

sim::Knobs draw_knobs(Chance& chance) {
  sim::Knobs knobs;
  const uint64_t slower = chance.below(4) == 3 ? 10 : 1;
  for (sim::Delay* delay : {&knobs.placement, &knobs.notification, &knobs.completion,
                            &knobs.read_notification, &knobs.control}) {
    delay->least *= slower;
    delay->most *= slower;
  }
  knobs.pieces_most = static_cast<uint32_t>(chance.between(1, 4));
  knobs.transfers_in_flight = static_cast<uint32_t>(chance.between(1, 4));
  constexpr uint32_t kPreemptions[] = {0, 8, 16, 16, 64};
  knobs.preempted_one_in = kPreemptions[chance.below(std::size(kPreemptions))];
  return knobs;
}

void draw_deliveries(Chance& chance, const RunPlan& plan, QueryPlan& query) {
  if (!plan.lanes_end_at_nodes) return;
  for (StagePlan& stage : query.stages) {
    const uint64_t draw = chance.below(4);
    if (draw < 2)
      deliver_to_nodes(stage, [&plan](uint32_t worker) { return plan.node_of(worker); });
    if (draw == 2) replicate(stage);
  }
}

RunPlan draw_plan(uint64_t seed) { return Drawing(seed).draw(); }

std::string describe(const RunPlan& plan) {
  std::string text = fmt::format("seed {}: {} nodes with {} workers\n", plan.seed,
                                 plan.node_count(), fmt::join(plan.workers_per_node, "+"));
  text += "  settings:";
  for (const auto& [name, value] : plan.settings) text += fmt::format(" {}={}", name, value);
  if (plan.is_tight) text += "; tight";
  if (plan.knobs.rings_stand) text += "; rings stand";
  if (plan.disk_bytes != UINT64_MAX) text += fmt::format("; disks of {} bytes", plan.disk_bytes);
  text += '\n';
  for (size_t q = 0; q < plan.queries.size(); ++q) {
    const QueryPlan& query = plan.queries[q];
    text +=
        fmt::format("  query {} of node {}: workers {}, {} bytes a stage{}{}\n", q, query.issuer,
                    fmt::join(query.workers, ","), query.stage_bytes,
                    query.stops_early ? ", early stops" : "", query.has_barrier ? ", barrier" : "");
    for (const StagePlan& stage : query.stages) {
      text += fmt::format(
          "    stage {}: {}, rows of {}, from {} to {}{}\n", stage.stage,
          workload::spread_name(stage),
          stage.row_bytes != 0 ? std::to_string(stage.row_bytes)
                               : fmt::format("{} … {}", stage.least_bytes, stage.most_bytes),
          fmt::join(stage.senders, ","), stage.nodes.empty() ? "" : "any of the nodes of ",
          fmt::join(stage.receivers, ","));
    }
  }
  for (const Fault& fault : plan.faults) {
    text += fmt::format(
        "  at {:.3f} ms: {}, node {}, peer {}, query {}, way {}, {} times, {:.3f} ms\n",
        static_cast<double>(fault.at) / 1e6, fault_name(fault.kind), fault.node, fault.peer,
        fault.query, fault.way, fault.count, static_cast<double>(fault.lasting) / 1e6);
  }
  return text;
}

}  // namespace faro::simulation
