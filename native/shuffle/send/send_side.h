// SendSide: the outgoing rings of a worker: which frame is open in each, when its bytes leave, what waits for room.
#pragma once

#include <cstdint>
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

  OutRing& ring_to(uint32_t receiver_worker, uint32_t stage) noexcept;
  /// Rings to a node's workers, by receiver and number.
  std::span<OutRing> rings_of(uint32_t node) noexcept;

  /// Space in a ring as transport::Outgoing::claim; none if there is none, not even after making room in the worker's
  /// own ring.
  transport::Claim claim(OutRing& lane, uint32_t least_bytes, uint32_t most_bytes);
  /// A frame of `length` bytes is written in the claimed space. Its transfer starts when the threshold is reached.
  void commit(OutRing& lane, uint32_t length);
  /// The frame of a stream is open now, in the ring or in overflow.
  void opened(OutStream& stream);
  /// Commits or queues the open frame of a stream, if it has one; of a lane.
  void close(OutStream& stream);
  void close_open_frame(OutRing& lane) {
    if (lane.open != nullptr) close(*lane.open);
  }
  /// Drops it; its rows never existed.
  void abandon(OutStream& stream) noexcept;

  void enqueue(std::unique_ptr<QueuedFrame> frame);
  /// Drops what a stream has in its lane's queue. `data_only`: OPEN and FINISH stay.
  void drop_queued(OutStream& stream, bool data_only);
  /// Moves a lane's queue on as far as there is room. Returns whether it is empty.
  bool send_queued(OutRing& lane);
  /// Those of all lanes.
  void send_queued();
  bool has_queued() const noexcept { return queued_lanes_ > 0; }
  /// Nobody will send any more: before the queries go that they are of.
  void drop_queues() noexcept;

  /// Closes open frames and starts all transfers.
  void flush();
  /// The same, but leaves it to Membership::flush_network that they really start.
  void post_open_frames();

  /// The worker waits for room in the ring of a stream, or of what a query has queued; answers would_wait.
  Outcome blocked_on_room(const OutStream& stream) noexcept;
  Outcome blocked_on_queues(const Query& query) noexcept;
  /// The engine holds batches: what it sends must not wait for others, who may wait for these.
  bool holds_batches() const noexcept { return receive_side_.frames().held() > 0; }

  /// What lies in the rings to a lost node is of queries that cannot be complete any more: drops it, and fails these.
  void drop_lanes(uint32_t node);

  /// A worker writes one row in place at a time.
  bool has_claim() const noexcept { return has_claim_; }
  void set_claim(bool exists) noexcept { has_claim_ = exists; }

 private:
  void make_lanes();
  void mark_dirty(OutRing& lane);
  bool post_open_frame(OutRing& lane);
  bool make_room_in_own_ring(OutRing& lane);
  bool send_first_queued(OutRing& lane);

  const WorkerContext& worker_;
  Operation& operation_;
  WaitLoop& wait_loop_;
  ReceiveSide& receive_side_;
  std::vector<OutRing> lanes_;  // receiver * rings_per_lane + k
  std::vector<OutRing*> dirty_;
  uint32_t queued_lanes_ = 0;  // lanes whose queue is not empty
  bool has_claim_ = false;
};

}  // namespace faro::shuffle
