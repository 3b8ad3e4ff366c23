// StreamWriter: writes rows, OPEN and FINISH of a shuffle into the ring to a receiver, or into that ring's queue.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "faro/outcome.h"
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/query/row_format.h"
#include "shuffle/send/out_ring.h"
#include "shuffle/send/send_side.h"
#include "wire/frame.h"

namespace faro::shuffle {

/// What to do with a row if its ring is full while the worker holds batches: queue it in overflow, or do not take it.
enum class WhenFull : uint8_t { overflow, nowhere };

/// Threads: the worker. Blocks: never; a call that would wait notes what it waits for (BlockedOn).
class StreamWriter {
 public:
  StreamWriter(ShuffleContext& shuffle, SendSide& side, RowFormat format)
      : shuffle_(shuffle), side_(side), format_(std::move(format)) {}

  /// The row format that the next OPEN carries.
  RowFormat& format() noexcept { return format_; }

  /// Bytes that a row takes in a frame.
  uint64_t framed_bytes(uint64_t row_bytes) const noexcept {
    return shuffle_.spec().row_bytes == 0 ? row_bytes + sizeof(wire::RowLength) : row_bytes;
  }
  bool is_large(uint64_t row_bytes, const OutStream& stream) const noexcept {
    return framed_bytes(row_bytes) > payload_limit(stream);
  }

  /// Makes room for `bytes` more bytes in the stream's open frame; opens a new frame if there is none with room.
  Outcome make_room(OutStream& stream, uint32_t bytes, WhenFull when_full);
  /// The same without overflow. would_wait: no room in the ring, or rows are queued for it.
  Outcome make_room_in_ring(OutStream& stream, uint32_t bytes);
  /// Writes a row into the room that make_room has made.
  void write(OutStream& stream, std::span<const std::byte> row);
  /// Closes the frame at once if it has no room for another row of `next_bytes` bytes and the threshold is below the frame
  /// limit. Rows of the inlined path do not get here: the next call that is not inlined closes their frame.
  void close_if_full(OutStream& stream, uint32_t next_bytes);

  /// Before a row larger than a frame: sends what is open or queued for the ring, and OPEN.
  Outcome prepare_large(OutStream& stream);
  /// Queues a row that lies in `frame`, and sends what there is room for.
  void send_large(std::unique_ptr<QueuedFrame> frame, uint64_t row_bytes);
  /// Sends or queues a row of `bytes` bytes that lies in `frame` and is no larger than a frame. Never waits, and needs
  /// no memory beyond that of `frame`, so that it cannot fail for lack of room.
  Status send_shrunk(std::unique_ptr<QueuedFrame> frame, size_t bytes);

  /// Sends FINISH. would_wait: no room, and no batch is held.
  Outcome finish(OutStream& stream);

  /// A frame of `bytes` bytes for the queue of a stream's ring; null unless done.
  Outcome make_queued(OutStream& stream, wire::FrameKind kind, uint64_t bytes,
                      std::unique_ptr<QueuedFrame>& frame);

  /// Answers failed, because a row is being written in place in that ring.
  Outcome fail_by_claim(const OutRing& ring);

 private:
  uint32_t payload_limit(const OutStream& stream) const noexcept {
    return stream.ring.transport->frame_limit() - static_cast<uint32_t>(sizeof(wire::FrameHeader));
  }
  Outcome announce(OutStream& stream);
  Outcome open_in_overflow(OutStream& stream);
  Outcome send_control(OutStream& stream, wire::FrameKind kind, const std::string& payload);

  ShuffleContext& shuffle_;
  SendSide& side_;
  RowFormat format_;
};

}  // namespace faro::shuffle
