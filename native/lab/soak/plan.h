// What a seed decides in a soak: clusters, their queries, and what happens to their nodes. Every process
// draws it for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/workload/plan.h"

namespace faro::soak {

/// The nodes of every cluster; one of them, the witness, meets with no fault and lives to the end.
inline constexpr uint32_t kNodes = 4;
/// The most nodes that a cluster has whose nodes come and go.
inline constexpr uint32_t kNodeLimit = 6;

struct Options {
  uint64_t seed = 1;
  double seconds = 1200;
  uint32_t kills = 0;  ///< not 0: ends after that many, with one in each cluster and no other fault
  bool churn = false;  ///< nodes come and go all the time
  uint64_t liveness_ms = 2000;
  std::string transport;  ///< empty: shm, tcp or auto, by chance
  /// Numeric addresses of this host, on which the nodes take turns to listen.
  std::vector<std::string> hosts = {"127.0.0.1"};
  std::string secret_file;  ///< of all clusters
};

enum class FaultKind : uint8_t {
  paused,   // SIGSTOP for less than a quarter of the time limit: nothing may be lost
  stopped,  // SIGSTOP until all others have lost it
  killed,   // kill -9
};

/// What happens to a node during a query.
struct FaultPlan {
  FaultKind kind = FaultKind::killed;
  uint32_t victim = 0;
  uint64_t after_ns = 0;    ///< since the query was begun
  uint64_t lasting_ns = 0;  ///< of `paused`
  bool returns = false;     ///< of a loss: the node starts again in the running cluster
};

struct ClusterPlan {
  std::vector<uint32_t> workers_per_node;  ///< of each number that a node can have
  std::vector<std::pair<std::string, std::string>> settings;
  uint64_t ring_bytes = 0;
  bool lanes_end_at_nodes = false;  ///< then stages have any delivery
  uint32_t queries = 0;
  std::vector<std::pair<uint32_t, FaultPlan>> faults;  ///< and during which query, ascending
  uint32_t rounds = 0;  ///< if nodes come and go: how often the witness is alone

  uint32_t first_worker(uint32_t node) const;
  uint32_t node_of(uint32_t worker) const;
};

struct QueryPlan : workload::QueryPlan {
  std::optional<uint32_t> cancelled_by;  ///< a sender of its first stage, half-way through it

  bool takes_part(const ClusterPlan& cluster, uint32_t node) const;
};

uint32_t witness_of(const Options& options);
ClusterPlan draw_cluster(const Options& options, uint64_t number);
/// `nodes`: all their workers take part, and nobody cancels; empty: some workers, as the seed decides.
QueryPlan draw_query(const Options& options, const ClusterPlan& cluster, uint64_t cluster_number,
                     uint32_t query, const std::vector<uint32_t>& nodes);

}  // namespace faro::soak
