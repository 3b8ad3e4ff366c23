// LinkLanes: binds the rings of a worker (Lane, InRing) to those of the links.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "faro/shuffle.h"
#include "faro/status.h"
#include "ring/ready_set.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/receive_side.h"
#include "shuffle/send/lanes.h"

namespace faro::shuffle {

/// Releases the rings of a node that was lost, and binds those of the process that starts again in its place
/// (session/README.md, "Return").
///
/// Threads: the worker, at the beginning or end of an operation, when none of its calls is inside
/// the old rings; or the thread that has borrowed it (Ownership).
class LinkLanes {
 public:
  LinkLanes(const WorkerContext& worker, Lanes& lanes, ReceiveSide& receive_side)
      : worker_(worker), lanes_(lanes), receive_side_(receive_side) {}

  /// Binds all rings to the links as they are now. Returns false if the engine still holds a batch or a claim in an
  /// old one; call it again then. `uses_any`: shuffles are open.
  bool rebind(bool uses_any);
  /// Lets go of the rings of links that are lost; no shuffle is open. What else has changed is bound by rebind. Throws:
  /// std::bad_alloc.
  void let_go_of_lost();
  /// Makes sure that no row of a new shuffle goes into a ring of a lost link. Errors: wrong_state if a node of the
  /// stage still has one.
  Status check(const ShuffleSpec& spec);
  /// Grows whenever lanes have got other rings; by the worker itself only.
  const uint64_t& generation() const noexcept { return generation_; }

 private:
  std::set<uint32_t> nodes() const;
  bool is_wanted_for_good(uint32_t node) const noexcept;
  bool rebind(uint32_t node);
  void forget_absent(uint32_t node) noexcept;
  void count_rebound() noexcept { generation_ += std::exchange(rebound_, false) ? 1 : 0; }
  bool uses_rings(uint32_t node) noexcept;
  void bind(uint32_t node, const std::shared_ptr<transport::DataLink>& link);
  /// Null: its rings end at the worker, or it is absent.
  std::shared_ptr<NodeLink> at_node_end(uint32_t node,
                                        const std::shared_ptr<transport::DataLink>& link);

  const WorkerContext& worker_;
  Lanes& lanes_;
  ReceiveSide& receive_side_;
  uint64_t changes_seen_ = 0;  // Membership::link_changes
  bool bound_ = false;         // once
  bool rebound_ = false;       // since generation_ was counted
  uint64_t generation_ = 0;
};

}  // namespace faro::shuffle
