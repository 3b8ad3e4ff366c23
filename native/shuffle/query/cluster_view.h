// ClusterView: the cluster as queries see it: its nodes and their workers, and which nodes are there, are to come or are lost.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "faro/query.h"
#include "faro/status.h"

namespace faro::shuffle {

struct ClusterShape {
  uint32_t node = 0;
  std::vector<uint64_t> incarnations;  // per node; 0: it is missing
  std::vector<std::string> node_names;
  std::vector<uint32_t> first_worker;  // per node
  std::vector<uint32_t> worker_count;  // per node
  bool nodes_change =
      false;  // nodes can be added and removed, and are linked when a query needs them
};

/// Numbers, names and workers never change. Threads: any for these; for the rest under the table's lock.
class ClusterView {
 public:
  explicit ClusterView(ClusterShape shape);

  uint32_t own() const { return shape_.node; }
  uint32_t node_count() const { return static_cast<uint32_t>(shape_.node_names.size()); }
  const std::string& name(uint32_t node) const { return shape_.node_names[node]; }
  const std::string& own_name() const { return name(own()); }
  bool nodes_change() const { return shape_.nodes_change; }
  uint32_t worker_count() const { return shape_.first_worker.back() + shape_.worker_count.back(); }
  uint32_t first_own_worker() const { return shape_.first_worker[own()]; }
  uint32_t own_worker_count() const { return shape_.worker_count[own()]; }
  bool has_worker(uint32_t node, uint32_t worker) const;
  uint32_t node_of_worker(uint32_t worker) const;

  uint64_t incarnation(uint32_t node) const { return shape_.incarnations[node]; }
  /// Another incarnation of its issuer is another life: all its queries ended with it.
  bool is_of_this_life(const QueryId& id) const {
    return id.issuer < node_count() && id.incarnation == incarnation(id.issuer);
  }
  /// Whether its issuer is there, and the process that has begun it; or is to come, and may be.
  bool may_live(const QueryId& id) const;
  /// It is linked, or the own node.
  bool is_there(uint32_t node) const { return there_.contains(node); }
  /// It is a member, and not linked: a query that needs it has it linked.
  bool is_to_come(uint32_t node) const { return to_come_.contains(node); }
  /// It is a member, and not linked, but its process is known: both have agreed to let the link go.
  /// It may have ended since.
  bool is_parted(uint32_t node) const { return parted_.contains(node); }
  /// It is there, but nothing may be sent to it: it was asked whether the link is to be let go.
  bool is_held(uint32_t node) const { return held_.contains(node); }
  /// A query that needs it waits, and what is to be said to it is kept.
  bool is_out_of_reach(uint32_t node) const { return is_to_come(node) || is_held(node); }
  /// This node was not told of it, or not of the process that has the number now.
  bool is_unknown(uint32_t node) const {
    return nodes_change() && node < node_count() && !is_there(node) && !is_to_come(node) &&
           !losses_.contains(node);
  }
  /// Those that are linked, and the own node. In order.
  const std::set<uint32_t>& there() const { return there_; }
  /// Why a node is gone.
  Status loss(uint32_t node) const;
  /// Why a query cannot contain a node; ok if it can.
  Status why_not_in(const QueryId& id, uint32_t node) const;

  /// A node was added.
  void expect(uint32_t node);
  /// The number is that of no node any more.
  void forget(uint32_t node);
  /// `begun`: how many queries this node had begun by then.
  void lose(uint32_t node, const Status& cause, uint64_t begun);
  void join(uint32_t node, uint64_t new_incarnation, uint64_t begun);
  /// Nothing may be sent to a node that is there.
  void hold(uint32_t node) { held_.insert(node); }
  /// What hold() began is over: the link of the node stays.
  void go_on(uint32_t node) noexcept { held_.erase(node); }
  /// The link with a node that is held is let go: the node is to come again.
  void part(uint32_t node) noexcept;

 private:
  ClusterShape shape_;
  std::set<uint32_t> there_;
  std::set<uint32_t> held_;  // of these
  std::set<uint32_t> to_come_;
  std::set<uint32_t> parted_;  // of those that are to come
  std::map<uint32_t, Status>
      losses_;  // of those that were lost; all others that are not there are missing
  std::map<uint32_t, uint64_t>
      begun_before_;  // queries begun here that cannot contain the process that is there now
};

}  // namespace faro::shuffle
