// Runs one node of a Faro contestant on several hosts: each node is a process that was started by
// hand, node 0 leads. See cluster.h for one host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/cluster.h"

namespace faro::bench {

struct ClusterNodeOptions {
  uint32_t node = 0;  ///< this one
  std::vector<std::string>
      nodes;                 ///< host:port of each session; node 0 also uses the port after its
  uint32_t round_count = 1;  ///< the first one is a warm-up
  Config config;             ///< cluster.node, cluster.nodes and cluster.workers are set here
  /// What the job is, as numbers: node 0 refuses nodes that were started with other ones.
  std::vector<uint64_t> job_words;
  uint64_t join_limit_ns = 60'000'000'000;    ///< for all nodes to be started
  uint64_t round_limit_ns = 120'000'000'000;  ///< for one round
  /// Called on node 0 and on the others when a round starts; may be empty.
  std::function<void(uint32_t round)> on_round;
};

/// Joins the others, opens the session, lets the workers do their job in every round, and closes.
/// A round's time is measured by each node from the moment it is told to start.
///
/// Returns: on node 0 the timed rounds and the reports of all nodes in order; on the others no rounds and
/// their own report alone. `job` has a process for each node.
/// Threads: makes one per worker. Blocks: until all rounds are over, or a time limit.
/// Errors: invalid_argument (nodes, or another job than node 0's), connect_failed (who is missing),
/// peer_lost, deadline_exceeded, and those of Session::open and the RoundWorkers.
Result<FaroRun> run_cluster_node(const ClusterNodeOptions& options, const ClusterJob& job);

}  // namespace faro::bench
