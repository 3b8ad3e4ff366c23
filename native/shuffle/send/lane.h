// Lane: one outgoing ring of a worker, which all its shuffles share: the frame that is open in it,
// what is queued for it, and when its bytes leave. Destination: one receiver of one shuffle.
//
//   closed ──make_room──▶ open, in the ring ──────close──▶ committed
//                      ▶ open, in overflow ──────close──▶ queued ──room──▶ committed
//   open   ──claim_row──▶ claimed: a row is being written in place ──commit_row, unclaim_row──▶ open
//
// A ring has at most one open frame, of one destination. While its queue (the outgoing overflow) is
// not empty, nothing for the ring overtakes it (native/DESIGN.md#hc-5).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "counters/counter_file.h"
#include "faro/outcome.h"
#include "faro/shuffle.h"
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/query/row_format.h"
#include "shuffle/send/queued_frame.h"
#include "shuffle/send/row_cursor.h"
#include "shuffle/send/row_pieces.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace faro::shuffle {

class Lane;
class Lanes;

/// What to do with a row if its ring is full while the worker holds batches: queue it in overflow, or
/// do not take it.
enum class WhenFull : uint8_t { overflow, nowhere };

/// What a shuffle sends by all its lanes.
struct SentStage {
  ShuffleContext& shuffle;
  ShuffleSide& side;
  RowFormat format;     // that the next OPEN carries
  const uint16_t slot;  // of the shuffle at its worker

  /// Bytes that a row takes in a frame.
  uint64_t framed_bytes(uint64_t row_bytes) const noexcept {
    return shuffle.spec().row_bytes == 0 ? row_bytes + sizeof(wire::RowLength) : row_bytes;
  }
};

/// One receiver of one shuffle. Lives until nothing of it is queued.
class Destination {
 public:
  Destination(SentStage& of, Lane& by, std::span<const uint32_t> at_workers, uint16_t stream,
              SentCounts& counts, detail::FrameCursor& at, uint32_t& counted)
      : stage(of),
        lane(by),
        sent(counts),
        workers(at_workers),
        receiver(at_workers.front()),
        slot(stream),
        rows_(of.shuffle.spec().row_bytes, at, counted) {}

  SentStage& stage;
  Lane& lane;
  SentCounts& sent;
  const std::span<const uint32_t> workers;  // their numbers
  const uint32_t receiver;                  // the first of them
  const uint16_t slot;                      // in its ring
  uint32_t owed_blocks = 0;  // of groups: closed, and not yet in its ring or its queue
  bool finished = false;     // FINISH is committed or queued
  bool stopped = false;      // the receiver needs no more

  bool has_queued() const noexcept { return queued_ > 0; }
  /// OPEN is committed or queued.
  bool is_announced() const noexcept { return announced_; }
  /// Answers failed: a row is being written in place.
  Outcome fail_by_claim();

 private:
  friend class Lane;

  RowCursor rows_;       // in its open frame
  uint32_t queued_ = 0;  // frames in the lane's queue
  bool announced_ = false;
};

/// A whole frame that lies in memory of its sender's: the frame of a group's block.
struct WholeFrame {
  std::span<const std::byte> bytes;  // with the header
  uint32_t rows = 0;

  uint32_t payload() const noexcept {
    return static_cast<uint32_t>(bytes.size() - sizeof(wire::FrameHeader));
  }
};

/// Threads: the worker. Blocks: never; a call that would wait notes what it waits for (BlockedOn).
class Lane {
 public:
  /// `receiver`: number of the worker where it ends, or of the first one of the node.
  Lane(Lanes& lanes, uint32_t receiver, bool is_to_node) noexcept;

  /// From now on its ring is that of its link's transport. `held`: DataLink::held of the link.
  void bind(transport::Outgoing& ring, const std::atomic<bool>& held) noexcept {
    ring_ = &ring;
    held_ = &held;
  }
  void count_in(counters::OutgoingCounters& counters) noexcept { counters_ = &counters; }
  uint32_t receiver() const noexcept { return receiver_; }
  std::span<const std::byte> memory() const { return ring_->memory(); }

  // --- rows that fit into a frame

  bool is_large(const Destination& to, uint64_t row_bytes) const noexcept {
    return to.stage.framed_bytes(row_bytes) > payload_limit();
  }
  /// Makes room for `bytes` more bytes in the open frame of `to`; opens a new one if there is none with room.
  Outcome make_room(Destination& to, uint32_t bytes, WhenFull when_full);
  /// Writes a row into the room that make_room has made.
  void write(Destination& to, const RowPieces& row);
  /// The place of the next row, of `bytes` bytes, in the room that make_room has made for it.
  std::span<std::byte> claim_row(Destination& to, size_t bytes) noexcept;
  /// Ends the claim; of the row that was written there the first `bytes` count.
  void commit_row(Destination& to, size_t bytes);
  /// Ends the claim; there was no row.
  void unclaim_row(Destination& to) noexcept;
  /// A row is being written in place: nothing else can be sent by this lane until commit or abort.
  bool is_row_claimed() const noexcept { return open_ != nullptr && open_->rows_.is_claimed(); }
  /// A row is being written in place, in the ring itself and not in overflow.
  bool is_row_claimed_in_ring() const noexcept {
    return is_row_claimed() && in_overflow_ == nullptr;
  }

  // --- whole frames, and rows too large for one

  /// Sends what is open or queued for the ring, and OPEN.
  Outcome prepare(Destination& to);
  /// Copies a frame of `to`, which is announced, behind all that was sent before; nothing larger than a single row may need.
  /// would_wait: there is no room, and it was not queued; nothing is noted of that.
  Outcome send_copy(Destination& to, const WholeFrame& frame, WhenFull when_full);
  /// Commits a frame with the next bytes of a row of `row_bytes` bytes, of which `rest` has those that were not sent. False:
  /// there is no room.
  bool send_fragment(Destination& to, uint64_t row_bytes, PieceReader& rest);
  /// A frame of `bytes` bytes for the queue; null unless done.
  Outcome make_queued(Destination& to, wire::FrameKind kind, uint64_t bytes,
                      std::unique_ptr<QueuedFrame>& frame);
  /// Queues a row that lies in `frame`, and sends what there is room for.
  void send_large(std::unique_ptr<QueuedFrame> frame, uint64_t row_bytes);
  /// Sends or queues a row of `bytes` bytes that lies in `frame` and is no larger than a frame. Never waits, and needs
  /// no memory beyond that of `frame`, so that it cannot fail for lack of room.
  Status send_shrunk(std::unique_ptr<QueuedFrame> frame, size_t bytes);

  // --- the end

  /// Sends FINISH behind all rows of `to`. would_wait: no room, and no batch is held.
  Outcome finish(Destination& to);
  /// Commits or queues the open frame, if there is one, whichever shuffle's it is.
  void close();
  /// Drops the open frame of `to`, if it has one. Answers how many rows were in it.
  uint32_t drop_open(Destination& to) noexcept;
  /// Drops what `to` has queued. `data_only`: OPEN and FINISH stay.
  void drop_queued(Destination& to, bool data_only);
  /// Drops all that is open or queued: the node is lost, and the queries it belongs to fail.
  void lose_rows(uint32_t node);

  /// Closes the open frame and starts the transfer. Returns whether a frame is still open.
  bool flush();
  /// Sends what is queued as far as there is room. Returns whether the queue is empty.
  bool send_queued();
  bool has_queued() const noexcept { return !queue_.empty(); }

  /// The worker waits for room in this ring. Answers would_wait.
  Outcome blocked(Destination& to) noexcept;

 private:
  friend class Lanes;
  friend class Destination;

  uint32_t payload_limit() const noexcept;

  Outcome make_room_in_ring(Destination& to, uint32_t bytes);
  Outcome open_in_overflow(Destination& to);
  void open_frame(Destination& to, std::byte* begin, uint64_t bytes);
  void forget_frame() noexcept;
  void close_if_full(Destination& to, uint64_t next_bytes);

  Outcome announce(Destination& to);
  Outcome send_control(Destination& to, wire::FrameKind kind, const std::string& payload,
                       uint32_t field_bytes);
  transport::Claim claim(uint32_t least_bytes, uint32_t most_bytes);
  void commit(uint32_t length, const std::byte* end);

  void enqueue(std::unique_ptr<QueuedFrame> frame);
  bool send_first_queued();

  Lanes& lanes_;
  transport::Outgoing* ring_ = nullptr;
  const std::atomic<bool>* held_ = nullptr;
  counters::OutgoingCounters* counters_;
  const uint32_t receiver_;
  const bool is_to_node_;
  bool is_listed_ = false;                    // in the list of lanes to flush
  Destination* open_ = nullptr;               // whose frame is open; null: none is
  std::byte* begin_ = nullptr;                // of the open frame
  std::unique_ptr<QueuedFrame> in_overflow_;  // it lies there, and will join the queue
  FrameQueue queue_;
};

}  // namespace faro::shuffle
