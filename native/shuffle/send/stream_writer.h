// StreamWriter: gets rows, OPEN and FINISH of a shuffle into the ring of a receiver, or into the queue before it.
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

/// Where a row goes whose ring is full while the worker holds batches.
enum class WhenFull : uint8_t { overflow, nowhere };

/// Threads: the worker. Blocks: never; what would wait notes what for.
class StreamWriter {
 public:
  StreamWriter(ShuffleContext& shuffle, SendSide& side, RowFormat format)
      : shuffle_(shuffle), side_(side), format_(std::move(format)) {}

  /// What the next OPEN says the rows are.
  RowFormat& format() noexcept { return format_; }

  /// Bytes that a row takes in a frame.
  uint64_t framed_bytes(uint64_t row_bytes) const noexcept {
    return shuffle_.spec().row_bytes == 0 ? row_bytes + sizeof(wire::RowLength) : row_bytes;
  }
  bool is_large(uint64_t row_bytes, const OutStream& stream) const noexcept {
    return framed_bytes(row_bytes) > payload_limit(stream);
  }

  /// Makes room for `bytes` more in the open frame, which may be a new one.
  Outcome make_room(OutStream& stream, uint32_t bytes, WhenFull when_full);
  /// The same without overflow. would_wait: no room in the ring, or rows are queued for it.
  Outcome make_room_in_ring(OutStream& stream, uint32_t bytes);
  /// Into room that was made.
  void write(OutStream& stream, std::span<const std::byte> row);
  /// With a threshold below a frame the transfer starts with the row that reaches it.
  void close_if_full(OutStream& stream, uint32_t next_bytes);

  /// Before a row that is larger than a frame: what the ring has goes first, and OPEN.
  Outcome prepare_large(OutStream& stream);
  /// Queues a row that lies in `frame`, and sends what there is room for.
  void send_large(std::unique_ptr<QueuedFrame> frame, uint64_t row_bytes);
  /// Queues a row of `bytes` bytes that lies in `frame` but is no larger than a frame, or sends it.
  /// Never waits, and needs no memory but that of `frame`: only so it cannot fail for want of either.
  Status send_shrunk(std::unique_ptr<QueuedFrame> frame, size_t bytes);

  /// FINISH. would_wait: no room, and no batch is held.
  Outcome finish(OutStream& stream);

  /// A frame of `bytes` bytes for the queue of a stream's ring; null unless done.
  Outcome make_queued(OutStream& stream, wire::FrameKind kind, uint64_t bytes,
                      std::unique_ptr<QueuedFrame>& frame);

  /// The answer where a row is being written in place in that ring.
  Outcome fail_by_claim(const OutRing& lane);

 private:
  uint32_t payload_limit(const OutStream& stream) const noexcept {
    return stream.ring.transport->frame_limit() - static_cast<uint32_t>(sizeof(wire::FrameHeader));
  }
  Outcome open(OutStream& stream);
  Outcome open_in_overflow(OutStream& stream);
  Outcome send_control(OutStream& stream, wire::FrameKind kind, const std::string& payload);

  ShuffleContext& shuffle_;
  SendSide& side_;
  RowFormat format_;
};

}  // namespace faro::shuffle
