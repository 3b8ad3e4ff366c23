// InRing: one incoming ring of a worker. FrameNode: a frame that has arrived by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shuffle/overflow/overflow.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace faro::shuffle {

class Inbox;
struct InRing;

/// A frame of a shuffle that has arrived and was not yet given back, or several that follow each other, packed in overflow.
struct FrameNode {
  FrameNode* next = nullptr;         // in its sender's queue, or in the pool
  FrameNode* ring_before = nullptr;  // in its ring's list, while in place and not handed out
  FrameNode* ring_after = nullptr;
  InRing* ring = nullptr;  // where the frame lies; null: in overflow
  Inbox* inbox = nullptr;  // while it is in a queue
  uint32_t token = 0;      // of the frame in the ring
  wire::FrameKind kind = wire::FrameKind::data;
  uint32_t sender = 0;  // worker number
  uint32_t row_count = 0;
  uint32_t row_bytes = 0;        // 0: rows have a length each
  wire::FragmentPayload part{};  // of a fragment: where in its row it belongs, as its sender says
  uint64_t payload_bytes = 0;    // of its rows, or of its part of a row
  const std::byte* payload = nullptr;  // null: in a file
  Stored stored;
};

static_assert(sizeof(FrameNode) + Overflow::kAllocatorBytes + 64 <= Overflow::kDescriptionBytes,
              "a node, and what the spill file keeps of a part");

/// How large a block to take for a frame with rows of `bytes` bytes, so that those behind it fit in, too: twice the block before (0:
/// there is none), up to Overflow::kPackedBytes, and a whole number of such frames.
uint64_t room_to_pack(uint64_t room_before, uint64_t bytes) noexcept;

/// Where a frame lies that was moved to overflow before its worker has taken it.
struct MovedFrame {
  Stored stored;
  wire::FragmentPayload part{};  // of a fragment; the bytes behind it are stored

  /// Copies the bytes of a frame there, charged to `usage`: behind those that are there, which leave room for them, or into a block of
  /// at least `room` bytes. Errors: overflow_exhausted.
  Status store(Overflow& overflow, OverflowUsage& usage, const transport::FrameView& frame,
               uint64_t room);
  /// Copies them to memory alone, and only if there is plenty (Overflow::store_if_plenty) or room.
  bool store_if_plenty(Overflow& overflow, OverflowUsage& usage, const transport::FrameView& frame,
                       uint64_t room);

 private:
  std::span<const std::byte> split(const transport::FrameView& frame) noexcept;
};

/// What a slot of a ring stands for.
struct Binding {
  enum class State : uint8_t { unbound, bound, discard };
  State state = State::unbound;
  Inbox* inbox = nullptr;
};

/// One incoming ring.
struct InRing {
  transport::Incoming* transport = nullptr;   // the ring itself, as its link's transport has it
  std::shared_ptr<transport::DataLink> link;  // that the ring belongs to
  uint32_t sender = 0;                        // worker number
  uint32_t sender_node = 0;
  bool backlog = false;  // in the worker's list of rings to look at again
  bool release_unsent =
      false;            // in the worker's list of rings with releases that the sender may not know
  bool broken = false;  // the peer broke the rules; nothing more comes
  bool has_undispatched = false;        // there was no memory for the node of the next frame:
  transport::FrameView undispatched{};  // this frame

  /// Its sender may be waiting for room that frames take which nobody receives.
  bool blocks_sender() const noexcept {
    return first != nullptr && (backlog || transport->may_block_sender());
  }
  FrameNode* first = nullptr;  // in place and not handed out, oldest first
  FrameNode* last = nullptr;
  std::vector<Binding> slots;
  std::vector<uint64_t>
      slot_owners;  // where it ends at the node: NodeStream::id of who has the slot; 0: nobody

  void append(FrameNode* node) noexcept;
  void unlink(FrameNode* node) noexcept;
};

}  // namespace faro::shuffle
