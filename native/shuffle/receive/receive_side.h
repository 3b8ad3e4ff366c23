// ReceiveSide: the incoming rings of a worker, and everything that comes out of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ring/ready_set.h"
#include "shuffle/operation/operation.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/dispatch.h"
#include "shuffle/receive/fragments.h"
#include "shuffle/receive/in_ring.h"
#include "shuffle/receive/inboxes.h"
#include "shuffle/receive/node_end.h"
#include "shuffle/receive/node_share.h"
#include "shuffle/receive/received_frames.h"
#include "shuffle/receive/spill.h"
#include "shuffle/receive/stage_agreement.h"

namespace faro::shuffle {

/// This type alone says who consumes a ring, or a share of one that ends at the node: the one worker it is made for. When the
/// worker looks at a ring it takes all frames that have arrived, whichever shuffle they belong to. So a frame that is wanted is
/// found at once, whatever lies before it.
///
/// Threads: the worker, except where said.
class ReceiveSide {
 public:
  /// `node_end`: where the rings end whose shares this side takes; null: its rings end at the worker.
  ReceiveSide(const WorkerContext& worker, NodeEnd* node_end, Operation& operation);

  /// Takes what has arrived in all rings that may have something; where rings end at the node, what is wanted alone. Returns whether
  /// anything had. Throws: std::bad_alloc; a frame that there was no memory for waits in its ring.
  bool poll(const NodeShare::Wanted& wanted);
  bool poll() { return poll({}); }
  /// An attempt begins; whether it has polled. What a poll finds that comes later belongs to the next attempt.
  void begin_attempt() noexcept { has_polled_ = false; }
  bool has_polled() const noexcept { return has_polled_; }
  /// Tells senders what was released.
  void tell_releases() { frames_.tell_releases(); }

  /// Whether a sender may be waiting for room in a ring with frames that nobody receives, and that stay no longer than
  /// `after`.
  bool has_blocked_sender(Haste after) const noexcept;
  /// Spills such rings, but not what is to stay longer than `after`. Returns whether any frame moved.
  bool spill_blocked(Haste after);
  /// Spills the rings by which the worker sends to itself.
  bool spill_own();

  /// The rings from a node's workers to this one, by sender and number, and behind them its shares in those that end at the node. Made by
  /// the first call; LinkLanes binds them.
  /// Throws: std::bad_alloc.
  std::span<InRing> rings_of(uint32_t node);
  /// Whether they are made.
  bool has_rings(uint32_t node) const noexcept { return rings_.contains(node); }
  /// By node.
  const std::map<uint32_t, std::vector<InRing>>& rings() const noexcept { return rings_; }
  /// Forgets them: no shuffle is open, and the node is not linked.
  void forget_rings(uint32_t node) noexcept;
  /// Looks at these rings at the next poll, marked or not.
  void look_at(uint32_t node);
  /// Drops all rows from the workers of a lost node.
  void abandon(uint32_t node);

  Inboxes& inboxes() noexcept { return inboxes_; }
  const Inboxes& inboxes() const noexcept { return inboxes_; }
  ReceivedFrames& frames() noexcept { return frames_; }
  const ReceivedFrames& frames() const noexcept { return frames_; }
  StageAgreement& agreement() noexcept { return agreement_; }
  Fragments& fragments() noexcept { return fragments_; }
  /// Null: rings end at the worker.
  NodeShare* at_node() noexcept { return at_node_ ? &*at_node_ : nullptr; }

 private:
  InRing* marked(uint32_t number) const noexcept;
  bool visit(InRing& ring) noexcept;
  bool try_dispatch(InRing& ring, const transport::FrameView& view) noexcept;
  void look_again(InRing& ring) noexcept;

  const WorkerContext& worker_;
  ring::ReadySet& ready_;
  std::map<uint32_t, std::vector<InRing>> rings_;                         // by node: as rings_of
  using RingGroup = std::array<InRing*, ring::ReadySet::kRingsPerGroup>;  // null: none
  std::vector<std::unique_ptr<RingGroup>> ring_by_ready_;  // by group of ready numbers; null: none
  size_t ring_count_ = 0;
  std::vector<InRing*> backlog_;  // rings that may have more than was taken
  bool lacked_memory_ = false;    // for the node of a frame
  bool has_polled_ = false;       // since the attempt began
  ReceivedFrames frames_;
  Inboxes inboxes_;
  StageAgreement agreement_;
  Dispatch dispatch_;
  Fragments fragments_;
  Spill spill_;
  std::optional<NodeShare> at_node_;
};

}  // namespace faro::shuffle
