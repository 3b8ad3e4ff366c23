// What a random query is: who takes part in it, and what flows between them. Drawn from a seed, so that every process can draw it
// for itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "faro/shuffle.h"
#include "lab/workload/chance.h"

namespace faro::workload {

/// How rows of a stage are spread.
enum class Spread : uint32_t {
  by_key,     // one receiver: partition(FinalizerHash(key))
  one_key,    // the same with one key for all rows
  multicast,  // some receivers, at least one
  broadcast,  // all
};

/// A stage as all workers know it.
struct StagePlan {
  uint32_t query = 0;  // index in the run
  uint32_t stage = 0;
  Spread spread = Spread::by_key;
  uint32_t row_bytes = 0;  // 0: rows have a length each, of least … most bytes
  uint32_t least_bytes = 24;
  uint32_t most_bytes = 24;
  std::vector<uint32_t> senders;  // as in ShuffleSpec: empty is all
  std::vector<uint32_t> receivers;
  Delivery delivery = Delivery::worker;
  std::vector<std::vector<uint32_t>> nodes{};  // with Delivery::node: the workers of each receiver
  bool grouped = false;  // a row goes to a group of receivers, of which each sender has its own

  bool has_copies() const { return spread == Spread::multicast || spread == Spread::broadcast; }
};

/// "repartition", "gather", …
const char* spread_name(const StagePlan& stage) noexcept;

/// A query as all workers know it.
struct QueryPlan {
  uint64_t seed = 0;              // of its rows
  std::vector<uint32_t> workers;  // that take part, ascending
  std::vector<StagePlan> stages;  // senders and receivers are always named
  uint64_t stage_bytes = 0;       // that each sender sends in a stage, at most, about
  bool stops_early = false;       // some receivers have enough after a few rows

  /// That the sender makes in the stage, unless nobody wants them any more.
  uint64_t rows(const StagePlan& stage, uint32_t sender) const;
};

/// What a plan depends on.
struct Bounds {
  uint64_t ring_bytes = 4096;
  bool is_tight = false;  // only rows with lengths, mostly short ones that go to one receiver
};

/// All of them, or each with a chance of one half; at least one.
std::vector<uint32_t> some_of(Chance& chance, const std::vector<uint32_t>& workers);

/// Rows of a stage are for any worker of a node. `node_of`: of a worker.
void deliver_to_nodes(StagePlan& stage, const std::function<uint32_t(uint32_t)>& node_of);

/// Each receiver gets all rows of a stage.
void replicate(StagePlan& stage);

/// One to five stages between the workers of the query. `number`: its index in the run.
void draw_stages(Chance& chance, const Bounds& bounds, uint32_t number, QueryPlan& query);

}  // namespace faro::workload
