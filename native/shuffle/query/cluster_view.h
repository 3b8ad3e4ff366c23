// ClusterView: the cluster as queries see it: its nodes and their workers, one record for each node. What a node is they know
// from the latest view that they were given (session/peer_view.h), in turn with its messages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "faro/query.h"
#include "faro/status.h"
#include "session/peer_view.h"

namespace faro::shuffle {

using session::PeerState;

/// What queries know of a node when the session has opened.
struct ClusterNode {
  std::string name;
  uint32_t first_worker = 0;
  uint32_t worker_count = 0;
  /// A query that needs it while it is not linked fails; else the query has it linked, and waits (session/topology.h).
  bool wanted_for_good = true;
  session::PeerView peer;
};

struct ClusterShape {
  uint32_t node = 0;               // this one
  std::vector<ClusterNode> nodes;  // by number
  /// Those of a query, and of a shuffle, for which none are named; none: they have to be named.
  std::vector<uint32_t> default_workers;
};

/// How far a node is drained (drains.h).
enum class DrainStage : uint8_t { none, in_use, released, let_go };

/// Numbers in order, of nodes that have something in common. To change it takes no memory.
class NodeNumbers {
 public:
  explicit NodeNumbers(uint32_t node_count) { numbers_.reserve(node_count); }
  const std::vector<uint32_t>& all() const { return numbers_; }
  void set(uint32_t node, bool is_member) noexcept;

 private:
  std::vector<uint32_t> numbers_;
};

/// Numbers, names and workers never change. Threads: any for these; for the rest under the table's lock.
class ClusterView {
 public:
  explicit ClusterView(ClusterShape shape);

  uint32_t own() const { return shape_.node; }
  uint32_t node_count() const { return static_cast<uint32_t>(shape_.nodes.size()); }
  const std::string& name(uint32_t node) const { return shape_.nodes[node].name; }
  const std::string& own_name() const { return name(own()); }
  bool is_wanted_for_good(uint32_t node) const { return shape_.nodes[node].wanted_for_good; }
  const std::vector<uint32_t>& default_workers() const { return shape_.default_workers; }
  /// A query has the workers that were declared for it, and no others.
  bool needs_declaration() const { return default_workers().empty(); }
  uint32_t worker_count() const {
    return shape_.nodes.back().first_worker + shape_.nodes.back().worker_count;
  }
  uint32_t first_own_worker() const { return shape_.nodes[own()].first_worker; }
  uint32_t own_worker_count() const { return shape_.nodes[own()].worker_count; }
  bool has_worker(uint32_t node, uint32_t worker) const;
  uint32_t node_of_worker(uint32_t worker) const;

  // --- what nodes are

  /// That of the process which is linked, or was last; 0: none was.
  uint64_t incarnation(uint32_t node) const { return nodes_[node].peer.incarnation; }
  PeerState state(uint32_t node) const { return nodes_[node].peer.state; }
  /// Another incarnation of its issuer is another life: all its queries ended with it.
  bool is_of_this_life(const QueryId& id) const {
    return id.issuer < node_count() && id.incarnation == incarnation(id.issuer);
  }
  /// Whether more may come of a query that has ended here: the process that has begun it is its
  /// issuer, or is to come.
  bool may_be_heard_of(const QueryId& id) const {
    return is_of_this_life(id) || (is_to_come(id.issuer) && !is_parted(id.issuer));
  }
  /// Whether its issuer is there, and the process that has begun it; or is to come, and may be.
  bool may_live(const QueryId& id) const;
  /// It is linked, or the own node.
  bool is_there(uint32_t node) const { return state(node) == PeerState::linked || is_held(node); }
  /// It is a member, and not linked, or not for long: a query that needs it has it linked.
  bool is_to_come(uint32_t node) const {
    return (state(node) == PeerState::apart && !is_wanted_for_good(node)) || is_parted(node);
  }
  /// It is to come, but its process is known.
  bool is_parted(uint32_t node) const {
    return state(node) == PeerState::agreed || state(node) == PeerState::parted;
  }
  bool is_lost(uint32_t node) const {
    return state(node) == PeerState::lost || state(node) == PeerState::drained;
  }
  bool is_held(uint32_t node) const { return state(node) == PeerState::asked; }
  /// A query that needs it waits, and what is to be said to it is kept.
  bool is_out_of_reach(uint32_t node) const { return is_to_come(node) || is_held(node); }
  /// This node was not told of it, or not of the process that has the number now.
  bool is_unknown(uint32_t node) const {
    return node < node_count() && state(node) == PeerState::none;
  }
  /// Those that are linked, and the own node. In order.
  const std::vector<uint32_t>& there() const { return there_.all(); }
  /// Why a node is gone.
  Status loss(uint32_t node) const;
  /// Why a query cannot contain a node; ok if it can.
  Status why_not_in(const QueryId& id, uint32_t node) const;

  // --- what happens to them

  /// A later view of it counts from now on. Needs no memory.
  void adopt(uint32_t node, const session::PeerView& now) noexcept;
  /// A new process of it is linked; `begun`: how many queries this node had begun by then.
  void join(uint32_t node, const session::PeerView& now, uint64_t begun) noexcept;
  /// It is lost, or drained; `begun`: those that this node had begun by then.
  void lose(uint32_t node, const session::PeerView& now, Status cause, uint64_t begun) noexcept;

  // --- what others keep of them

  /// Since when its link is idle, or this node waits for what its peer is to say (idle_links.h); none: it is needed, or it is
  /// to be set at the next tick.
  std::optional<base::Nanoseconds>& idle_since(uint32_t node) { return nodes_[node].idle_since; }

  DrainStage drain(uint32_t node) const { return nodes_[node].drain; }
  void set_drain(uint32_t node, DrainStage stage) noexcept;
  /// Those that are being drained, or are drained. In order.
  const std::vector<uint32_t>& drained() const { return drained_.all(); }
  /// The last process with its number was removed after this node had released it.
  bool& has_released_former(uint32_t node) { return nodes_[node].has_released_former; }
  /// Which peers have released it, and which of its processes.
  std::map<uint32_t, uint64_t>& released_by(uint32_t node) { return nodes_[node].released_by; }
  const std::map<uint32_t, uint64_t>& released_by(uint32_t node) const {
    return nodes_[node].released_by;
  }

 private:
  struct Node {
    session::PeerView peer;
    DrainStage drain = DrainStage::none;
    bool has_released_former = false;
    // The last query begun here that cannot contain the process which is there now.
    uint64_t begun_before = 0;
    Status loss;  // of one that is lost
    std::optional<base::Nanoseconds> idle_since;
    std::map<uint32_t, uint64_t> released_by;
  };

  const ClusterShape shape_;
  std::vector<Node> nodes_;  // by number
  NodeNumbers there_;
  NodeNumbers drained_;
};

}  // namespace faro::shuffle
