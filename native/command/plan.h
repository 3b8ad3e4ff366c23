// What a cluster of some shape takes, computed before anyone runs it.
//
// Rings: from each worker of a node to each worker of another there is a lane of ring.per_lane
// rings. With m nodes of n workers and B bytes per lane a node has (m-1)·n²·B of outgoing rings and
// as much of incoming ones. Over tcp and verbs it holds both itself; over shm only the incoming ones,
// for an outgoing ring *is* the peer's incoming one. Its own workers have n²·B more between them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/settings.h"
#include "transport/transport.h"

namespace faro::command {

struct PlanInput {
  base::Settings settings;      ///< resolved; names as many nodes as the cluster is to have
  uint32_t nodes_per_host = 1;  ///< nodes on one machine; between them auto chooses shm
  /// What carries links between machines if not tcp: the loaded verbs transport; null: none does.
  const transport::Transport* verbs = nullptr;
};

/// Bytes of the objects that are counted per ring, lane and shuffle; of this build. Those of verbs, a
/// library of its own, are counted as if they were tcp's, of which they are a few words more.
struct StateSizes {
  uint64_t tcp_outgoing_ring = 0;
  uint64_t tcp_incoming_ring = 0;
  uint64_t shm_outgoing_ring = 0;
  uint64_t shm_incoming_ring = 0;
  uint64_t outgoing_lane_ring = 0;  ///< beside the transport's
  uint64_t incoming_lane_ring = 0;
  uint64_t per_receiver = 0;  ///< of an open shuffle
  uint64_t per_sender = 0;
  uint64_t per_frame = 0;  ///< that lies in an incoming ring
};
StateSizes state_sizes_of_this_build();

/// One node.
struct NodePlan {
  uint64_t outgoing_ring_bytes = 0;  ///< of the rings alone: the (m-1)·n²·B of this page
  uint64_t incoming_ring_bytes = 0;
  uint64_t local_ring_bytes = 0;  ///< between the node's own workers

  // What is allocated at open.
  uint64_t shm_bytes = 0;       ///< sealed segments of links to nodes of the same host
  uint64_t tcp_bytes = 0;       ///< rings of both directions
  uint64_t verbs_bytes = 0;     ///< rings of both directions and messages, all of it pinned
  uint64_t local_bytes = 0;     ///< rings between own workers
  uint64_t ready_bytes = 0;     ///< ready words (those of shm are part of its segments)
  uint64_t doorbell_bytes = 0;  ///< one cache line per worker
  uint64_t counter_bytes = 0;   ///< a cache line per ring and direction, and some per worker
  uint64_t state_bytes = 0;     ///< positions, counters, tables of lanes, by worker and ring

  // What queries may take on top.
  uint64_t shuffle_bytes = 0;          ///< tables of shuffle.limit open shuffles, all workers
  uint64_t frame_bytes = 0;            ///< nodes of as many small frames as rings can hold
  uint64_t overflow_memory_bytes = 0;  ///< budget
  uint64_t overflow_file_bytes = 0;    ///< budget
  uint64_t overflow_table_bytes = 0;   ///< memory that describes what lies in the file

  uint32_t shm_links = 0;
  uint32_t tcp_links = 0;
  uint32_t verbs_links = 0;
  uint64_t descriptors = 0;

  uint32_t links() const noexcept { return shm_links + tcp_links + verbs_links; }
  /// What memory.limit_bytes bounds.
  uint64_t link_bytes() const noexcept { return shm_bytes + tcp_bytes + verbs_bytes + local_bytes; }
  uint64_t open_bytes() const noexcept {
    return link_bytes() + ready_bytes + doorbell_bytes + counter_bytes + state_bytes;
  }
  uint64_t most_bytes() const noexcept {
    return open_bytes() + shuffle_bytes + frame_bytes + overflow_memory_bytes +
           overflow_table_bytes;
  }
};

struct ClusterPlan {
  std::vector<NodePlan> nodes;

  /// The node that takes most memory.
  uint32_t largest() const noexcept;
  /// The same of `count` nodes from `first` on: one machine, or the cluster.
  NodePlan sum(uint32_t first, uint32_t count) const noexcept;
  uint64_t link_count() const noexcept;
};

/// Threads: any. Blocks: never. Settings must be resolved.
ClusterPlan make_plan(const PlanInput& input, const StateSizes& sizes);

}  // namespace faro::command
