// RoundPlan: what a seed decides about one round, the same in the driver and in every node.
#pragma once

#include <faro/shuffle.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace outside {

enum class Spread : uint8_t { repartition, one_key, multicast, broadcast };

struct StagePlan {
  uint32_t query = 0;  // index
  uint32_t number = 0;
  Spread spread = Spread::repartition;
  uint32_t row_bytes = 0;   // 0: rows have a length each,
  uint32_t most_bytes = 0;  // … up to this
  uint64_t most_rows = 0;   // of a sender
  std::vector<uint32_t> senders;
  std::vector<uint32_t> receivers;
  faro::Delivery delivery = faro::Delivery::worker;
  uint32_t place_count = 0;  // receivers as senders number them: workers, nodes, or one for all
  std::map<uint32_t, uint32_t> places;  // of the receiving workers among these
};

/// What one worker of a query does on purpose, at a random moment.
enum class Trouble : uint8_t { none, cancels_shuffle, cancels_query, closes_early, fails };

struct QueryPlan {
  uint32_t issuer = 0;            // node
  std::vector<uint32_t> workers;  // that take part, ascending
  std::vector<StagePlan> stages;
  Trouble trouble = Trouble::none;
  uint32_t trouble_worker = 0;
  uint64_t trouble_after = 0;  // steps of that worker
  bool stops = false;          // some receivers have enough after a few rows
};

struct Kill {
  uint32_t node = 0;
  uint64_t after_us = 0;  // since all nodes were told to go
};

struct RoundPlan {
  uint64_t seed = 0;
  std::vector<uint32_t> workers_per_node;
  std::vector<std::pair<std::string, std::string>> settings;  // the same at every node
  uint64_t ring_bytes = 0;
  std::string secret;      // empty: none
  bool scarce = false;     // overflow is small, and may be used up
  bool all_close = false;  // a node closes when all have finished; else when it has finished itself
  std::vector<QueryPlan> queries;
  std::vector<Kill> kills;

  uint32_t node_count() const { return static_cast<uint32_t>(workers_per_node.size()); }
  uint32_t worker_count() const;
  uint32_t node_of(uint32_t worker) const;
  uint32_t first_worker(uint32_t node) const;
  bool takes_part(const QueryPlan& query, uint32_t node) const;
};

RoundPlan draw_round(uint64_t seed);
std::string describe(const RoundPlan& plan);

/// A reason that a user would give; the oracle looks for it.
std::string reason_of_trouble(uint32_t query);

}  // namespace outside
