// FrameNode: a frame that has arrived.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shuffle/overflow/overflow.h"
#include "wire/frame.h"

namespace faro::shuffle {

class Inbox;
struct InRing;

/// A frame of a shuffle that has arrived and was not yet given back, or several, packed in overflow.
struct FrameNode {
  FrameNode* next = nullptr;         // in its stream's queue, or in the pool
  FrameNode* ring_before = nullptr;  // in its ring's list, while in place and not handed out
  FrameNode* ring_after = nullptr;
  InRing* ring = nullptr;  // where the frame lies; null: in overflow
  Inbox* inbox = nullptr;  // while it is in a queue
  uint32_t token = 0;      // of the frame in the ring
  wire::FrameKind kind = wire::FrameKind::data;
  uint32_t sender = 0;  // worker number
  uint32_t row_count = 0;
  uint32_t row_bytes = 0;  // 0: rows have a length each
  uint64_t payload_bytes = 0;
  const std::byte* payload = nullptr;  // null: in a file
  Stored stored;

  /// The bytes of its rows, or of its part of a row.
  uint64_t bytes_of_rows() const noexcept {
    return kind == wire::FrameKind::fragment ? payload_bytes - sizeof(wire::FragmentPayload)
                                             : payload_bytes;
  }
};

static_assert(sizeof(FrameNode) + Overflow::kAllocatorBytes + 64 <= Overflow::kDescriptionBytes,
              "a node, and what the spill file keeps of a part");

/// FrameNodes, some of them kept for reuse. There are as many as frames lie in rings, which those bound
/// (ring::Consumer::kTracked), and as there are blocks in overflow, where they are counted.
class FramePool {
 public:
  /// Nodes that are kept while nobody needs them.
  static constexpr uint32_t kKept = 256;

  FramePool() = default;
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// nullptr: there is no memory for one.
  FrameNode* take() noexcept;
  void give(FrameNode* node) noexcept;

 private:
  FrameNode* free_ = nullptr;
  uint32_t free_count_ = 0;
};

}  // namespace faro::shuffle
