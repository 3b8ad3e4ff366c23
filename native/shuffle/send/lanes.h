// Lanes: the outgoing lanes of a worker.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "faro/outcome.h"
#include "shuffle/operation/operation.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/query/logical_receivers.h"
#include "shuffle/receive/receive_side.h"
#include "shuffle/send/lane.h"

namespace faro::shuffle {

class Group;

/// Threads: the worker.
class Lanes {
 public:
  Lanes(const WorkerContext& worker, Operation& operation, ReceiveSide& receive_side)
      : worker_(worker), operation_(operation), receive_side_(receive_side) {}
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  const WorkerContext& worker() const noexcept { return worker_; }
  /// The lane to a worker, or to its node, that a stage with this delivery uses.
  Lane& to(uint32_t receiver_worker, uint32_t stage, Delivery delivery);
  /// The number by which the shuffle in a slot of this worker is known in that lane.
  uint16_t stream_to(uint32_t receiver_worker, uint16_t slot, Delivery delivery) const;
  /// Whether two receivers are reached by one lane.
  bool are_shared(const LogicalReceivers& receivers, Delivery delivery) const;
  /// The fields of an OPEN to workers of one node.
  std::string open_fields(Delivery delivery, std::span<const uint32_t> receiver_workers) const;
  /// The lanes to a node, by receiving end and number. Made by the first call; LinkLanes binds them. Throws:
  /// std::bad_alloc.
  std::span<Lane> to_node(uint32_t node);
  /// Forgets them: no shuffle is open, and the node is not linked.
  void forget(uint32_t node) noexcept;

  /// A group is made: there is room to list it. Throws: std::bad_alloc.
  void expect_group();
  /// One less: the group has been abandoned.
  void forget_group() noexcept { --group_count_; }
  /// Those that were abandoned need no flush.
  void unlist_groups() noexcept;

  /// Sends what is queued, and what groups have closed, as far as there is room.
  void send_queued();
  bool has_queued() const noexcept { return queued_ > 0; }
  /// Drops all queues. Nobody sends any more; call it before the queries that the frames belong to are destroyed.
  void drop_queues() noexcept;

  /// Closes open frames and starts all transfers.
  void flush();
  /// Closes open frames; transfers may wait until transport::IdleWork::flush.
  void post_open_frames();

  /// Notes that the worker waits for room in a ring for which a query has frames queued. Answers would_wait.
  Outcome blocked_on_queues(const Query& query) noexcept;
  /// The engine holds batches. A send must not wait then: the worker it waits for may be waiting for these batches to
  /// be released.
  bool holds_batches() const noexcept { return receive_side_.frames().held() > 0; }

  /// Drops what lies in the lanes to a lost node, and fails the queries that it belongs to: they cannot complete.
  void lose(uint32_t node);

  /// A worker writes one row in place at a time.
  bool has_row_claim() const noexcept { return has_claim_; }
  void set_claim(bool exists) noexcept { has_claim_ = exists; }

 private:
  friend class Lane;
  friend class Group;

  /// The largest frame of a single row: alike for all lanes, though the rings of some are larger, as a row may go to several.
  uint32_t frame_limit() const noexcept { return wire::frame_limit(worker_.settings.ring_bytes); }
  /// Whether rows of such a stage go over lanes to nodes.
  bool end_at_node(Delivery delivery) const noexcept;
  /// Which of its node's workers that is.
  uint32_t index_on_node(uint32_t worker) const;
  bool is_to_own(const Lane& lane) const;
  void list(Lane& lane);
  void list(Group& group) noexcept;
  void flush_groups();
  bool make_room_in_own_ring(Lane& lane);

  const WorkerContext& worker_;
  Operation& operation_;
  ReceiveSide& receive_side_;
  std::map<uint32_t, std::vector<Lane>> lanes_;  // by node: end at it * rings_per_lane + k
  size_t count_ = 0;
  counters::OutgoingCounters unlinked_;  // of lanes to nodes that were not linked: shown nowhere
  std::vector<Lane*> listed_;            // to be flushed
  uint32_t queued_ = 0;         // lanes whose queue is not empty, and groups whose block is closed
  std::vector<Group*> groups_;  // that may have rows: to be flushed
  size_t group_count_ = 0;      // all there are
  bool has_claim_ = false;
};

}  // namespace faro::shuffle
