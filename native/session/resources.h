// Resources: what a session allocates on this machine: rings in private memory, ready sets, doorbells and
// counters. Checks them, and what its links need, against the limits before it allocates anything.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/settings.h"
#include "counters/counter_file.h"
#include "faro/status.h"
#include "links/limits.h"
#include "links/memory_budget.h"
#include "links/network.h"
#include "links/transports.h"
#include "metrics/metrics_endpoint.h"
#include "ring/doorbell.h"
#include "ring/ready_set.h"
#include "session/peers.h"
#include "session/topology.h"
#include "transport/shm/node_doorbells.h"
#include "transport/transport.h"

namespace faro::session {

/// What the workers of this node have for each ring to and from a node, beside the transport's (shuffle/send, shuffle/receive).
inline constexpr uint64_t kOutgoingLaneRingBytes = 96;
inline constexpr uint64_t kIncomingLaneRingBytes = 184;
inline constexpr uint64_t kLaneSlotBytes = 16;  // of an incoming one, for each of shuffle.limit
/// What the node has for each incoming ring that ends at it, and what for the share of each of its workers in it.
inline constexpr uint64_t kNodeRingBytes = 11264;
inline constexpr uint64_t kRingShareBytes = 40;
/// Ready sets of a node: of its workers, and of the node where lanes end at it.
uint64_t ready_set_count(const base::Settings& settings, uint64_t workers);
/// What the workers of this node have for all rings of these layouts, with the tables by ready
/// number.
uint64_t lane_state_bytes(const base::Settings& settings, const ring::Layout& outgoing,
                          const ring::Layout& incoming);

/// Threads: network thread, or before that the opening thread; what allocate() has made: any.
class Resources {
 public:
  /// What links take together.
  struct LinkNeed {
    uint64_t memory_bytes = 0;
    uint64_t pinned_bytes = 0;  // of these
    void add(const base::Settings& settings, const transport::Transport& transport,
             const ring::Layout& outgoing, const ring::Layout& incoming);
  };

  /// All outlive it.
  Resources(const base::Settings& settings, const Peers& peers, links::Network& network);

  /// Checks the least that the links need. Before any peer is dialled, it is unknown which transports they will
  /// use. Errors: resource_limit (need and limit).
  Status check_least_need(const links::Transports& transports) const;
  /// Takes what one link needs, as long as the answer is kept. `checks_room`: unless allocate has counted it. Errors:
  /// resource_limit, system_error (no room for its counters); the links that stand are not touched.
  Result<std::shared_ptr<links::MemoryBudget::Share>> take_link(uint32_t node, const LinkNeed& need,
                                                                bool checks_room);

  /// Allocates everything, for links that need this much; once. `local_events` is told when a ring between this
  /// node's own workers is broken. Errors: resource_limit, config_invalid, system_error.
  Status allocate(const LinkNeed& links, transport::LinkEvents& local_events);
  bool allocated() const { return local_link_ != nullptr; }
  /// "1048576 bytes of rings (1.0 MiB)", for the log.
  std::string describe() const;

  // --- what a link is made with; filled by allocate

  std::span<transport::WorkerEnd> workers() { return workers_; }
  /// Where incoming rings end that end at the node; null: there are none.
  const transport::ReceivingEnd* node_end() const {
    return topology_.lanes_end_at_nodes() ? &node_end_ : nullptr;
  }
  /// The first group at each receiving end.
  std::span<const uint32_t> ready_groups(uint32_t node) const { return ready_groups_[node]; }
  transport::DoorbellMemory doorbell_memory() const { return doorbells_.memory(); }

  // --- what workers use, after allocate

  uint32_t first_ready(uint32_t node, uint32_t local_worker) const {
    return ready_groups_[node][local_worker] * ring::ReadySet::kRingsPerGroup;
  }
  ring::ReadySet& ready_set(uint32_t local_worker) { return *ready_sets_[local_worker]; }
  ring::DoorbellLine& doorbell(uint32_t local_worker) { return doorbells_.line(local_worker); }
  const std::shared_ptr<transport::DataLink>& local_link() const { return local_link_; }
  counters::CounterFile& counters() { return *counters_; }

  /// Has the rings of the node's data link counted in the counter file. Call it before any worker has the link.
  void count_rings(uint32_t node, transport::DataLink& data);
  /// Shows the link in the counter file.
  void show_link(uint32_t node, const transport::DataLink& data, uint64_t incarnation,
                 bool connected);
  void count_lost(uint32_t node);
  /// The number is that of no node any more.
  void count_removed(uint32_t node);
  /// Stops showing this session to other processes. Its memory stays.
  void close();

  /// What the counters of a node's lanes take, where these are made with its link.
  uint64_t lane_bytes_on_demand(uint32_t node) const;

 private:
  uint64_t fixed_memory_bytes() const;
  uint32_t ready_groups() const;
  uint32_t descriptors() const;
  Status check(const links::Need& need) const;
  counters::Shape counter_shape() const;
  Status make_counters();
  Result<std::unique_ptr<counters::CounterFile>> make_counter_file(const std::string& folder,
                                                                   base::Nanoseconds now) const;
  Status reserve_lanes(uint32_t node);
  Status start_metrics();
  void make_ready_sets();

  const base::Settings& settings_;
  const Peers& peers_;
  const Topology& topology_;
  links::Network& network_;
  std::unique_ptr<counters::CounterFile> counters_;
  std::unique_ptr<metrics::MetricsEndpoint> metrics_;  // null: not configured
  transport::shm::NodeDoorbells doorbells_;
  std::vector<std::unique_ptr<ring::ReadySet>> ready_sets_;
  std::vector<transport::WorkerEnd> workers_;
  std::unique_ptr<ring::ReadySet> node_ready_set_;  // null: no rings end at the node
  std::vector<ring::DoorbellLine*> doorbell_lines_;
  transport::ReceivingEnd node_end_;
  std::vector<std::vector<uint32_t>> ready_groups_;  // by node: the first one at each local worker
  std::shared_ptr<transport::DataLink> local_link_;
  LinkNeed taken_;
  const std::shared_ptr<links::MemoryBudget> budget_;
  std::shared_ptr<links::MemoryBudget::Share> own_share_;  // of what no link takes
};

}  // namespace faro::session
