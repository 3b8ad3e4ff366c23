// Computes what a cluster of a given shape needs, without running it.
//
// Rings: from each worker of a node to each worker of another there is a lane of ring.per_lane
// rings. With m nodes of n workers and B bytes per lane a node has (m-1)·n²·B of outgoing rings and
// as much of incoming ones. Over tcp and verbs it holds both itself; over shm it holds only the incoming ones,
// because an outgoing ring *is* the peer's incoming one. Its own workers have n²·B more between them.
// With lane.ends = node a lane goes to a node: each n² above is an n.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/settings.h"
#include "transport/transport.h"

namespace faro::command {

struct PlanInput {
  base::Settings settings;      ///< resolved; names as many nodes as the cluster is to have
  uint32_t nodes_per_host = 1;  ///< nodes on one machine; between them auto chooses shm
  uint32_t groups = 0;          ///< of several receivers, to which each worker sends at a time
  /// What carries links between machines if not tcp: the loaded verbs transport; null: none does.
  const transport::Transport* verbs = nullptr;
};

/// A sum of bytes, or 2^64-1 if it is larger. So no cluster is too large to be refused by its plan.
uint64_t sum_of_bytes(std::initializer_list<uint64_t> parts) noexcept;

/// Sizes in this build of the objects that are counted per shuffle and frame.
struct StateSizes {
  uint64_t per_receiver = 0;  ///< of an open shuffle
  uint64_t per_sender = 0;
  uint64_t per_frame = 0;   ///< that lies in an incoming ring
  uint64_t per_stream = 0;  ///< of a ring that ends at the node
};
StateSizes state_sizes_of_this_build();

/// The rings alone, without their headers and state.
struct RingPlan {
  uint64_t outgoing_bytes = 0;  ///< the (m-1)·n²·B, or (m-1)·n·B, of this page
  uint64_t incoming_bytes = 0;
  uint64_t local_bytes = 0;  ///< between the node's own workers

  /// To and from other nodes.
  uint64_t remote_bytes() const noexcept { return sum_of_bytes({outgoing_bytes, incoming_bytes}); }
  RingPlan& operator+=(const RingPlan& other) noexcept;
};

/// The links over one transport.
struct LinkPlan {
  uint32_t links = 0;
  uint64_t bytes = 0;

  void add_link(uint64_t its_bytes) noexcept { *this += LinkPlan{1, its_bytes}; }
  LinkPlan& operator+=(const LinkPlan& other) noexcept;
};

/// The budgets of overflow. 2^64-1 means unlimited.
struct OverflowPlan {
  uint64_t memory_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t table_bytes = 0;  ///< memory that describes what lies in the file
  uint64_t block_bytes = 0;  ///< of memory_bytes: the blocks of groups

  OverflowPlan& operator+=(const OverflowPlan& other) noexcept;
};

/// One node.
struct NodePlan {
  RingPlan rings;

  // What is allocated at open.
  LinkPlan shm;                 ///< sealed segments of links to nodes of the same host
  LinkPlan tcp;                 ///< rings of both directions
  LinkPlan verbs;               ///< rings of both directions and messages, all of it pinned
  uint64_t local_bytes = 0;     ///< rings between own workers
  uint64_t ready_bytes = 0;     ///< ready sets
  uint64_t doorbell_bytes = 0;  ///< one cache line per worker
  uint64_t counter_bytes = 0;   ///< a cache line per ring and direction, and some per worker
  uint64_t state_bytes = 0;     ///< links beside their rings, TLS included; tables of lanes

  // What queries may take in addition.
  uint64_t shuffle_bytes = 0;   ///< tables of shuffle.limit open shuffles, all workers
  uint64_t frame_bytes = 0;     ///< nodes of as many small frames as rings can hold
  uint64_t operator_bytes = 0;  ///< operator.memory_bytes; 2^64-1 means unlimited
  OverflowPlan overflow;

  uint64_t descriptors = 0;

  uint32_t links() const noexcept { return shm.links + tcp.links + verbs.links; }
  /// What memory.limit_bytes limits.
  uint64_t open_bytes() const noexcept {
    return sum_of_bytes({shm.bytes, tcp.bytes, verbs.bytes, local_bytes, ready_bytes,
                         doorbell_bytes, counter_bytes, state_bytes});
  }
  uint64_t most_bytes() const noexcept;

  NodePlan& operator+=(const NodePlan& other) noexcept;
};

struct ClusterPlan {
  std::vector<NodePlan> nodes;

  /// The node that takes most memory.
  uint32_t largest() const noexcept;
  /// The sum of the plans of `count` nodes from `first` on: of one machine, or of the cluster.
  NodePlan sum(uint32_t first, uint32_t count) const noexcept;
  uint64_t link_count() const noexcept;
};

/// A part of what a node takes, with the setting that bounds it.
struct PlanPart {
  const char* what;
  const char* setting;
  uint64_t bytes;
};
/// What is allocated at open, and what queries may take in addition; the largest first, none of 0.
std::vector<PlanPart> parts_at_open(const NodePlan& node);
std::vector<PlanPart> parts_of_queries(const NodePlan& node);

/// The plan of one node.
NodePlan make_plan_of(const PlanInput& input, const StateSizes& sizes, uint32_t node);
/// Threads: any. Blocks: never. Settings must be resolved.
ClusterPlan make_plan(const PlanInput& input, const StateSizes& sizes);

}  // namespace faro::command
