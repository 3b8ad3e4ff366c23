// OutRing: one outgoing ring of a worker, shared by all its shuffles; OutStream: one shuffle's rows for one receiver.
//
// A ring has at most one open frame, which belongs to one stream. While a ring's queue (the outgoing overflow) is not
// empty, nothing for the ring overtakes it (native/DESIGN.md#hc-5).
//
// Threads: everything here belongs to the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "counters/counter_file.h"
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/send/open_frame.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace faro::shuffle {

struct OutRing;

/// One shuffle's way to one receiver.
struct OutStream {
  OutStream(ShuffleContext& of, OutRing& by, SentCounts& counts, detail::FrameCursor& cursor,
            uint32_t& row_count)
      : shuffle(of), ring(by), sent(counts), frame(cursor, row_count, of.spec().row_bytes) {}

  ShuffleContext& shuffle;
  OutRing& ring;
  SentCounts& sent;
  OpenFrame frame;
  uint16_t slot = 0;
  bool announced = false;  // OPEN is committed or queued
  bool finished = false;   // FINISH is committed or queued
  bool stopped = false;    // the receiver needs no more
  uint32_t queued = 0;     // frames in the ring's queue; the stream lives until there are none
};

/// A frame, or a row too large for one, that waits for room in its ring.
struct QueuedFrame {
  std::unique_ptr<QueuedFrame> next;
  OutStream* stream = nullptr;
  wire::FrameKind kind = wire::FrameKind::data;  // fragment: a whole large row, to be cut
  uint32_t row_count = 0;
  uint32_t payload_bytes = 0;  // in `stored`, behind room for the header
  uint64_t row_bytes = 0;      // of a large row, in `stored`
  uint64_t sent_bytes = 0;     // of a large row: cut and committed
  Overflow* overflow = nullptr;
  Stored stored;

  /// Of its rows, as they count.
  uint64_t bytes_of_rows() const noexcept {
    return kind == wire::FrameKind::fragment ? row_bytes : row_count == 0 ? 0 : payload_bytes;
  }

  QueuedFrame() = default;
  QueuedFrame(const QueuedFrame&) = delete;
  QueuedFrame& operator=(const QueuedFrame&) = delete;
  ~QueuedFrame() {
    if (overflow != nullptr) overflow->free(stored);
  }
};
static_assert(
    sizeof(QueuedFrame) + Overflow::kAllocatorBytes + 64 <= Overflow::kDescriptionBytes,
    "the budget counts kDescriptionBytes for a QueuedFrame and its record in the spill file");

/// One outgoing ring.
struct OutRing {
  transport::Outgoing* transport = nullptr;  // the ring itself, as its link's transport has it
  const std::atomic<bool>* held = nullptr;   // DataLink::held of its link
  counters::OutgoingCounters* counters = nullptr;  // the ring's
  uint32_t receiver = 0;                           // worker number
  bool to_self = false;  // this worker is also the receiver: only it can make room
  bool dirty = false;    // in the list of rings to flush
  OutStream* open_stream =
      nullptr;  // the stream with the open frame, which lies in the ring or will join the queue
  std::unique_ptr<QueuedFrame> queue;  // first of the outgoing overflow
  QueuedFrame* queue_last = nullptr;

  /// A row is being written in place: nothing else can be sent through this ring until commit or abort.
  bool is_row_claimed() const noexcept {
    return open_stream != nullptr && open_stream->frame.is_row_claimed();
  }

  bool queue_empty() const { return queue == nullptr; }
  void enqueue(std::unique_ptr<QueuedFrame> frame) {
    QueuedFrame* added = frame.get();
    (queue_last != nullptr ? queue_last->next : queue) = std::move(frame);
    queue_last = added;
  }
  std::unique_ptr<QueuedFrame> dequeue() {
    std::unique_ptr<QueuedFrame> head = std::move(queue);
    queue = std::move(head->next);
    if (queue == nullptr) queue_last = nullptr;
    return head;
  }
};

}  // namespace faro::shuffle
