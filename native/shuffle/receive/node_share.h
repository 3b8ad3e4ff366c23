// NodeShare: what a worker takes of what comes by the rings that end at its node (node_end.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "shuffle/operation/operation.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/dispatch.h"
#include "shuffle/receive/in_ring.h"
#include "shuffle/receive/inbox.h"
#include "shuffle/receive/node_end.h"
#include "shuffle/receive/received_frames.h"
#include "shuffle/receive/spill.h"

namespace faro::shuffle {

/// Threads: the worker, except where said.
class NodeShare {
 public:
  /// `rings`: the worker's, by node, of each its shares last (ReceiveSide::rings_of). All outlive it.
  NodeShare(const WorkerContext& worker, NodeEnd& end, Operation& operation,
            std::map<uint32_t, std::vector<InRing>>& rings, Dispatch& dispatch,
            ReceivedFrames& frames, Spill& spill)
      : worker_(worker),
        end_(end),
        operation_(operation),
        rings_(rings),
        dispatch_(dispatch),
        frames_(frames),
        spill_(spill) {}

  /// What a call wants of frames that lie in rings which end at the node: one that has come for that inbox, if it is not null, from
  /// that sender alone, if `only` is not.
  struct Wanted {
    const Inbox* inbox = nullptr;
    const Inbox::SenderQueue* only = nullptr;
  };
  /// Takes what is for this worker: OPEN and FINISH, and of rows what is wanted. Returns whether anything was. Throws:
  /// std::bad_alloc; what there was no memory for waits.
  bool take(const Wanted& wanted);
  /// Whether the sender of a ring may wait for room that untaken frames take.
  bool has_blocked_sender() const noexcept;
  /// Moves frames of such rings to overflow that do not have to stay longer than `after`, of rings that are `of`. Returns whether any
  /// were.
  bool spill(Haste after, const std::function<bool(const InRing&)>& of);
  /// The worker takes no more of an inbox, which discards: the node's other workers do, if rows are for any of them.
  void has_left(const Inbox& inbox) noexcept;

  NodeEnd& end() noexcept { return end_; }
  /// Sorts what has come for any worker of the node: who was rung may be the only one who knows. Threads: any.
  void look() noexcept { end_.look(); }
  /// In place of this worker, which comes back late, if at all: others are woken for what it was rung for. Threads: any.
  void look_in_place() noexcept { end_.look_in_place_of(worker_.local_index); }

 private:
  bool take(NodeReader& reader, NodeFrame& frame, Wanted& wanted);
  bool take_control(InRing& ring, NodeReader& reader, NodeFrame& frame);
  bool take_rows(InRing& ring, const NodeReader& reader, NodeFrame& frame, Wanted& wanted);
  void drop_taken(InRing& ring, const NodeReader& reader, const NodeFrame& frame);
  void dispatch_taken(InRing& ring, const NodeReader& reader, NodeFrame& frame);
  static void hold(const NodeStream& stream, const NodeFrame& frame) noexcept;
  RingShare& share_of(const NodeStream& stream) noexcept;
  static bool is_of_stream(const NodeStream& stream, std::span<const std::byte> open) noexcept;
  static const Binding* binding(const InRing& ring, const NodeReader& reader) noexcept;
  const Inbox* inbox_of(const NodeStream& stream) noexcept;
  std::span<InRing> shares_of(std::vector<InRing>& rings) const noexcept;
  InRing* in_ring(const NodeStream& stream) noexcept;
  bool may_spill(const NodeStream& stream, Haste after);
  bool may_spill_for_any(const NodeStream& stream, Haste after);
  Status move_to_overflow(const NodeStream& stream, const NodeFrame& frame, Haste after,
                          uint64_t room, MovedFrame& to);

  const WorkerContext& worker_;
  NodeEnd& end_;
  Operation& operation_;
  std::map<uint32_t, std::vector<InRing>>& rings_;
  Dispatch& dispatch_;
  ReceivedFrames& frames_;
  Spill& spill_;
};

}  // namespace faro::shuffle
