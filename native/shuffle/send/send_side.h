// SendSide: the outgoing rings of a worker: which frame is open in each, when its bytes leave, and what waits for room.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "faro/outcome.h"
#include "shuffle/operation/operation.h"
#include "shuffle/operation/wait_loop.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/receive_side.h"
#include "shuffle/send/out_ring.h"

namespace faro::shuffle {

/// Threads: the worker.
class SendSide {
 public:
  SendSide(const WorkerContext& worker, Operation& operation, WaitLoop& wait_loop,
           ReceiveSide& receive_side);
  SendSide(const SendSide&) = delete;
  SendSide& operator=(const SendSide&) = delete;

  /// The ring of the lane to a worker that this stage uses.
  OutRing& ring_to(uint32_t receiver_worker, uint32_t stage);
  /// The rings to a node's workers, by receiver and number. Made by the first call; LinkLanes binds them. Throws:
  /// std::bad_alloc.
  std::span<OutRing> rings_of(uint32_t node);
  /// Forgets them: no shuffle is open, and the node is not linked.
  void forget_rings(uint32_t node) noexcept;

  /// Space in a ring, as transport::Outgoing::claim; none while its link is held. If the ring is full and leads to this worker itself, a call that
  /// waits makes room first.
  transport::Claim claim(OutRing& ring, uint32_t least_bytes, uint32_t most_bytes);
  /// The claimed space holds a frame of `length` bytes. A transfer starts if the threshold is reached.
  void commit(OutRing& ring, uint32_t length);
  /// The frame of a stream is open now, in the ring or in overflow.
  void frame_opened(OutStream& stream);
  /// Commits or queues the open frame of a stream, if it has one.
  void close(OutStream& stream);
  void close_open_frame(OutRing& ring) {
    if (ring.open_stream != nullptr) close(*ring.open_stream);
  }
  /// Drops the open frame of a stream; its rows never existed.
  void abandon(OutStream& stream) noexcept;

  void enqueue(std::unique_ptr<QueuedFrame> frame);
  /// Drops what a stream has in its ring's queue. `data_only`: OPEN and FINISH stay.
  void drop_queued(OutStream& stream, bool data_only);
  /// Sends what is queued for a ring as far as there is room. Returns whether the queue is empty.
  bool send_queued(OutRing& ring);
  /// The same for all rings.
  void send_queued();
  bool has_queued() const noexcept { return queued_rings_ > 0; }
  /// Drops all queues. Nobody sends any more; call it before the queries that the frames belong to are destroyed.
  void drop_queues() noexcept;

  /// Closes open frames and starts all transfers.
  void flush();
  /// The same, but the transfers may wait until Membership::flush_network.
  void post_open_frames();

  /// Notes that the worker waits for room in the ring of a stream, or in a ring for which a query has frames queued.
  /// Answers would_wait.
  Outcome blocked_on_room(const OutStream& stream) noexcept;
  Outcome blocked_on_queues(const Query& query) noexcept;
  /// The engine holds batches. A send must not wait then: the worker it waits for may be waiting for these batches to
  /// be released.
  bool holds_batches() const noexcept { return receive_side_.frames().held() > 0; }

  /// Drops what lies in the rings to a lost node, and fails the queries that it belongs to: they cannot complete.
  void drop_rings(uint32_t node);

  /// A worker writes one row in place at a time.
  bool has_row_claim() const noexcept { return has_claim_; }
  void set_claim(bool exists) noexcept { has_claim_ = exists; }

 private:
  void mark_dirty(OutRing& ring);
  bool post_open_frame(OutRing& ring);
  bool make_room_in_own_ring(OutRing& ring);
  bool send_first_queued(OutRing& ring);

  const WorkerContext& worker_;
  Operation& operation_;
  WaitLoop& wait_loop_;
  ReceiveSide& receive_side_;
  std::map<uint32_t, std::vector<OutRing>> rings_;  // by node: receiver on it * rings_per_lane + k
  size_t ring_count_ = 0;
  counters::OutgoingCounters unlinked_;  // of rings to nodes that were not linked: shown nowhere
  std::vector<OutRing*> dirty_;
  uint32_t queued_rings_ = 0;  // rings whose queue is not empty
  bool has_claim_ = false;
};

}  // namespace faro::shuffle
