#include "command/plan_proposal.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/return_if_error.h"
#include "base/settings.h"
#include "command/text.h"
#include "shuffle/overflow/overflow.h"

namespace faro::command {
namespace {

constexpr uint64_t kKib = 1024;
constexpr uint64_t kMib = 1024 * kKib;

/// A setting that may be lowered by halves, and what each half costs, as numbers that are compared.
struct Ladder {
  std::string_view name;
  uint64_t least;
  double cost;
  /// Halves below this cost three times as much.
  uint64_t usual;
};

// Rings below 16 KiB cut rows above 4 KiB into fragments. Few shuffles are open at a time.
constexpr Ladder kRingBytes{"ring.bytes", 4 * kKib, 2, 16 * kKib};
constexpr Ladder kRingsPerLane{"ring.per_lane", 1, 1, 1};
constexpr Ladder kShuffleLimit{"shuffle.limit", 1, 0.5, 8};
constexpr Ladder kOperators{"operator.memory_bytes", 16 * kMib, 1.5, 64 * kMib};
constexpr Ladder kOverflow{"overflow.memory_bytes", 16 * kMib, 1.5, 32 * kMib};
constexpr Ladder kOverflowFile{"overflow.file_bytes", 256 * kMib, 1, 1024 * kMib};
// Rows that are sent to several workers of a node by turns go in small frames.
constexpr double kCostOfNodes = 4;

bool is_free(const Config& config, std::string_view name) {
  return config.source(name).starts_with("default");
}

/// The values of a setting, each with what it costs.
struct Step {
  uint64_t value;
  double cost;
};
std::vector<Step> steps_of(const Config& config, const Ladder& ladder) {
  std::vector<Step> steps{{config.get_number(ladder.name), 0}};
  if (!is_free(config, ladder.name)) return steps;
  while (steps.back().value / 2 >= ladder.least) {
    const uint64_t value = steps.back().value / 2;
    steps.push_back({value, steps.back().cost + (value < ladder.usual ? 3 : 1) * ladder.cost});
  }
  return steps;
}

struct Candidate {
  base::Settings settings;
  double cost = 0;
  NodePlan node;
  bool keeps_at_most = false;
  bool keeps_at_open = false;

  /// Whether it is to be preferred.
  bool is_better_than(const Candidate& other) const {
    const auto rank = [](const Candidate& of) {
      const uint64_t bytes = of.keeps_at_open ? 0 : of.node.open_bytes();
      return std::make_tuple(!of.keeps_at_most, !of.keeps_at_open, bytes, of.cost);
    };
    return rank(*this) < rank(other);
  }
};

uint32_t node_with_most_workers(const base::Settings& settings) {
  const auto& workers = settings.workers_per_node;
  return static_cast<uint32_t>(std::ranges::max_element(workers) - workers.begin());
}

class Search {
 public:
  Search(const Config& config, const PlanInput& input, uint64_t budget)
      : config_(config),
        input_(input),
        budget_(budget),
        largest_(node_with_most_workers(input.settings)),
        operators_(steps_of(config, kOperators)),
        overflow_(steps_of(config, kOverflow)),
        files_(steps_of(config, kOverflowFile)) {}

  Candidate run() {
    std::vector<std::pair<std::string, double>> ends{{input_.settings.lane_ends, 0}};
    if (is_free(config_, "lane.ends") && ends.front().first != "node")
      ends.emplace_back("node", kCostOfNodes);
    for (const auto& [end, cost_of_end] : ends) {
      for (const Step& rings : steps_of(config_, kRingsPerLane)) {
        for (const Step& bytes : steps_of(config_, kRingBytes)) {
          for (const Step& shuffles : steps_of(config_, kShuffleLimit)) {
            if (end == "node" && !may_end_at_nodes(shuffles.value)) continue;
            try_settings(end, rings.value, bytes, shuffles.value,
                         cost_of_end + rings.cost + bytes.cost + shuffles.cost);
          }
        }
      }
    }
    return std::move(*best_);
  }

 private:
  // What base::Settings asks for.
  bool may_end_at_nodes(uint64_t shuffle_limit) const {
    const uint64_t workers = input_.settings.workers_per_node[largest_];
    return input_.settings.verbs_queue_pairs != "lane" &&
           workers * shuffle_limit <= uint64_t{UINT16_MAX} + 1;
  }

  void try_settings(const std::string& end, uint64_t rings, const Step& bytes, uint64_t shuffles,
                    double cost) {
    Candidate made{input_.settings, cost, {}};
    base::Settings& settings = made.settings;
    settings.lane_ends = end;
    settings.rings_per_lane = rings;
    if (bytes.value != settings.ring_bytes) settings.large_ring_bytes = bytes.value;
    settings.ring_bytes = bytes.value;
    settings.shuffle_limit = shuffles;
    PlanInput input = input_;
    input.settings = settings;
    made.node = make_plan_of(input, state_sizes_of_this_build(), largest_);
    made.keeps_at_open = made.node.open_bytes() <= budget_;
    fit_what_queries_take(made);
    if (!best_ || made.is_better_than(*best_)) best_ = std::move(made);
  }

  // Lowers the budgets of queries as far as that keeps the budget of the node.
  void fit_what_queries_take(Candidate& made) const {
    const NodePlan& node = made.node;
    const uint64_t fixed = node.open_bytes() + node.shuffle_bytes + node.frame_bytes;
    std::optional<std::tuple<double, uint64_t, uint64_t, uint64_t>> cheapest;
    for (const Step& operators : operators_) {
      for (const Step& overflow : overflow_) {
        for (const Step& file : files_) {
          const uint64_t tables =
              shuffle::OverflowLimits{overflow.value, file.value}.describing_bytes();
          if (fixed > budget_ || operators.value > budget_ - fixed ||
              overflow.value > budget_ - fixed - operators.value ||
              tables > budget_ - fixed - operators.value - overflow.value)
            continue;
          const std::tuple found{operators.cost + overflow.cost + file.cost, operators.value,
                                 overflow.value, file.value};
          if (!cheapest || found < *cheapest) cheapest = found;
        }
      }
    }
    made.keeps_at_most = cheapest.has_value();
    if (!cheapest) return;
    double cost = 0;
    std::tie(cost, made.settings.operator_memory_bytes, made.settings.overflow_memory_bytes,
             made.settings.overflow_file_bytes) = *cheapest;
    made.cost += cost;
  }

  const Config& config_;
  const PlanInput& input_;
  const uint64_t budget_;
  const uint32_t largest_;
  const std::vector<Step> operators_, overflow_, files_;
  std::optional<Candidate> best_;
};

}  // namespace

Result<PlanProposal> propose(const Config& config, const PlanInput& input, uint64_t budget_bytes) {
  const Candidate best = Search(config, input, budget_bytes).run();
  PlanProposal made;
  made.config = config;
  made.budget_bytes = budget_bytes;
  const auto set = [&](std::string_view name, uint64_t before, uint64_t value,
                       bool is_bytes) -> Status {
    if (before == value) return Status::Ok();
    const auto text = [&](uint64_t of) {
      return is_bytes ? exact_bytes_text(of) : std::to_string(of);
    };
    made.changes.push_back({std::string(name), text(value), text(before)});
    return made.config.set(name, value, "--budget");
  };
  const base::Settings& before = input.settings;
  const base::Settings& now = best.settings;
  if (now.lane_ends != before.lane_ends) {
    made.changes.push_back({"lane.ends", now.lane_ends, before.lane_ends});
    FARO_RETURN_IF_ERROR(made.config.set("lane.ends", now.lane_ends, "--budget"));
  }
  FARO_RETURN_IF_ERROR(set("ring.per_lane", before.rings_per_lane, now.rings_per_lane, false));
  FARO_RETURN_IF_ERROR(set("ring.bytes", before.ring_bytes, now.ring_bytes, true));
  FARO_RETURN_IF_ERROR(set("shuffle.limit", before.shuffle_limit, now.shuffle_limit, false));
  FARO_RETURN_IF_ERROR(
      set("operator.memory_bytes", before.operator_memory_bytes, now.operator_memory_bytes, true));
  FARO_RETURN_IF_ERROR(
      set("overflow.memory_bytes", before.overflow_memory_bytes, now.overflow_memory_bytes, true));
  FARO_RETURN_IF_ERROR(
      set("overflow.file_bytes", before.overflow_file_bytes, now.overflow_file_bytes, true));
  return made;
}

}  // namespace faro::command
