// NodeEnd: where the lanes to this node end, if they end at nodes (lane.ends = node). What comes by them is sorted into streams, each
// of a shuffle for one or several workers, and lies there until these ask for it, or any worker of the node moves it to overflow
// (native/DESIGN.md#hc-18).
//
// All workers of the node do that, under one right that is won by compare-and-swap and never waited for. Who does not get it
// leaves a mark, and the holder looks again after it has given the right back: the steps W1 to W4 of
// native/DESIGN.md#memory-orders. So what has arrived, or was released, is never left lying because somebody else was at it.
// The holder runs no code of the engine, and waits for nobody.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/fixed_array.h"
#include "ring/layout.h"
#include "ring/ready_set.h"
#include "session/membership.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/query/query_table.h"
#include "shuffle/receive/node_link.h"
#include "shuffle/receive/node_readers.h"
#include "shuffle/receive/node_ring.h"
#include "shuffle/receive/node_streams.h"
#include "shuffle/receive/untaken_report.h"
#include "transport/transport.h"

namespace faro::shuffle {

class NodeEnd {
 public:
  /// `membership` has a ready set of the node. All outlive it.
  NodeEnd(session::Membership& membership, QueryTable& queries, Overflow& overflow);
  ~NodeEnd();
  NodeEnd(const NodeEnd&) = delete;
  NodeEnd& operator=(const NodeEnd&) = delete;

  /// Sorts what has arrived, and gives back what was released; or the thread that is at it does so once more. A link that has
  /// changed counts from then on. Threads: any. Blocks: never.
  void look() noexcept;
  /// Queries have failed or ended: the next look drops what has come for them. Threads: any.
  void sweep_later() noexcept { sweeps_.store(true, std::memory_order_seq_cst); }
  /// Looks if nobody has since. Threads: any. Blocks: never.
  void sweep_if_due() noexcept {
    if (sweeps_.load(std::memory_order_seq_cst)) look();
  }
  /// What does not wait for a disk, for a thread that must not: lets go of links that are lost, drops what is not wanted any more, gives
  /// back what was released, and shows in the counter file what nobody has taken. What has arrived is sorted by the next worker that
  /// looks; one that had looked in vain meanwhile is woken. Threads: the network thread. Blocks: never.
  void tend() noexcept;
  /// A link that membership has for a node, by which a worker binds its shares; null: it is absent. Threads: any. Throws:
  /// std::bad_alloc.
  std::shared_ptr<NodeLink> link(uint32_t node,
                                 const std::shared_ptr<transport::DataLink>& carrier);

  /// Looks, and calls take(reader, frame) for the next frame of each reader of a worker, and again for the one behind it if it
  /// answers true: then the worker has the frame. False: somebody else is at it, and wakes the worker afterwards if anything waits
  /// for it. Threads: the worker. Throws: what `take` does.
  using Take = std::function<bool(NodeReader&, NodeFrame&)>;
  bool take(uint32_t local_worker, const Take& take);
  /// A worker has been woken that comes back late, if at all: looks, and wakes others that can take what it was woken for.
  /// Threads: any.
  void look_in_place_of(uint32_t local_worker) noexcept;
  /// A worker has left stages (NodeStage::leave): what nobody takes any more is dropped. Threads: any.
  void has_left() noexcept {
    sweep_later();
    look();
  }
  /// Looks, and has frames moved that lie in a ring and may keep its sender waiting. Returns whether any were. Threads: any worker.
  bool move(const NodeStreams::Move& move);

 private:
  friend class NodeRing;

  /// Has the right, and gives it back; then looks as often as somebody else has wanted it meanwhile.
  class Turn {
   public:
    /// `stores`: it may take time to write to overflow.
    explicit Turn(NodeEnd& end, bool stores = true) noexcept;
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const noexcept { return has_; }

   private:
    NodeEnd& end_;
    const bool stores_;
    bool has_;
  };

  bool take_right() noexcept;
  void settle_later(NodeRing& ring) noexcept;

  // With the right:
  void look_with_right() noexcept;
  void settle() noexcept;
  void attach_links();
  void attach(uint32_t node);
  void detach(uint32_t node) noexcept;

  void sort_marked(uint32_t number) noexcept;
  void sort(NodeRing& ring) noexcept;
  void sort_again(NodeRing& ring) noexcept;

  session::Membership& membership_;
  std::vector<uint32_t> node_of_group_;  // by group of ready numbers

  std::mutex links_mutex_;
  std::vector<std::weak_ptr<NodeLink>> made_;  // by node; guarded by links_mutex_

  alignas(64) std::atomic<bool> taken_{false};  // the right
  std::atomic<bool> due_{false};                // somebody did not get it
  std::atomic<bool> sweeps_{false};             // queries have ended
  std::atomic<NodeRing*> asked_{nullptr};       // rings to settle

  // With the right:
  alignas(64) ring::ReadySet& ready_;
  bool stores_ = true;                            // who has the right may write to overflow
  bool deferred_ = false;                         // something was not sorted for that
  std::vector<std::shared_ptr<NodeLink>> links_;  // by node; null: it is not linked
  uint64_t changes_seen_ = 0;                     // Membership::link_changes
  bool attached_ = false;                         // once
  NodeReaders readers_;
  NodeStreams streams_;
  UntakenReport report_;
};

}  // namespace faro::shuffle
