// QueuedFrame: what waits for room in a ring. FrameQueue: all that waits for one, the outgoing overflow.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "shuffle/overflow/overflow.h"
#include "wire/frame.h"

namespace faro::shuffle {

class Destination;

/// A frame, or a row too large for one.
struct QueuedFrame {
  std::unique_ptr<QueuedFrame> next;
  Destination* to = nullptr;
  wire::FrameKind kind = wire::FrameKind::data;  // fragment: a whole large row, to be cut
  uint32_t row_count = 0;
  uint32_t payload_bytes = 0;  // in `stored`, behind room for the header
  uint32_t field_bytes = 0;    // of these, of an OPEN
  uint64_t row_bytes = 0;      // of a large row, in `stored`
  uint64_t sent_bytes = 0;     // of a large row: cut and committed
  Overflow* overflow = nullptr;
  Stored stored;

  /// Bytes of its rows, as counters have them.
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

/// In the order in which they leave. Threads: the worker.
class FrameQueue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  /// Null: it is empty.
  QueuedFrame* first() const noexcept { return first_.get(); }

  void push(std::unique_ptr<QueuedFrame> frame) noexcept {
    QueuedFrame* const added = frame.get();
    (empty() ? first_ : last_->next) = std::move(frame);
    last_ = added;
  }
  /// Not if it is empty.
  std::unique_ptr<QueuedFrame> pop() noexcept {
    std::unique_ptr<QueuedFrame> first = std::move(first_);
    first_ = std::move(first->next);
    return first;
  }
  /// One after the other: a chain of unique_ptr would be destroyed by as many nested calls.
  void clear() noexcept {
    while (!empty()) pop();
  }

 private:
  std::unique_ptr<QueuedFrame> first_;
  QueuedFrame* last_ = nullptr;  // if it is not empty
};

}  // namespace faro::shuffle
