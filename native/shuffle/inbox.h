// Inbox: the receiving side of one shuffle at one worker, and InLane: one incoming ring of that
// worker.
//
// Frames are sorted as soon as the worker looks at a ring: each becomes a FrameNode in the queue of
// its shuffle and sender and stays where it lies until it is handed out and released, or, when the
// ring is needed for others, copied to overflow (native/DESIGN.md#inv-2). The queue of a
// sender is in order whether its frames lie in the ring or in overflow. Frames with rows that are copied
// one after the other are packed: one FrameNode for all that fit into its block (Overflow::kPackedBytes).
//
//   InLane  ──frames in place, oldest first──▶  FrameNode ◀──queue per sender──  Inbox::Stream
//
// Threads: everything here belongs to the worker.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shuffle/overflow/overflow.h"
#include "shuffle/query/query.h"
#include "shuffle/query/row_format.h"
#include "shuffle/query/stage_lists.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace faro::shuffle {

class Inbox;
struct InLane;

/// A frame of a shuffle that has arrived and was not yet given back, or several, packed in overflow.
struct FrameNode {
  FrameNode* next = nullptr;         // in its stream's queue, or in the pool
  FrameNode* lane_before = nullptr;  // in its lane's list, while in place and not handed out
  FrameNode* lane_after = nullptr;
  InLane* lane = nullptr;  // not null: the frame lies in this lane's ring
  Inbox* inbox = nullptr;  // while it is in a queue
  uint32_t token = 0;      // of the frame in the ring
  wire::FrameKind kind = wire::FrameKind::data;
  uint32_t sender = 0;  // worker number
  uint32_t row_count = 0;
  uint32_t row_bytes = 0;  // 0: rows have a length each
  uint64_t payload_bytes = 0;
  const std::byte* payload = nullptr;  // null: in a file
  Stored stored;
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

/// What a slot of a ring stands for.
struct Binding {
  enum class State : uint8_t { unbound, bound, discard };
  State state = State::unbound;
  Inbox* inbox = nullptr;
};

/// One incoming ring.
struct InLane {
  transport::Incoming* ring = nullptr;
  uint32_t sender = 0;  // worker number
  uint32_t sender_node = 0;
  uint32_t ring_bytes = 0;
  bool backlog = false;  // in the worker's list of rings to look at again
  bool release_unsent =
      false;                  // in the worker's list of rings with releases the sender may not know
  bool broken = false;        // the peer broke the rules; nothing more comes
  bool has_unsorted = false;  // there was no memory for the frame that came next:
  transport::FrameView unsorted{};  // that one

  /// Its sender may be waiting for what lies here unpolled. A ring at most half full has room for
  /// any frame, pad included.
  bool blocks_sender() const noexcept {
    return first != nullptr && (backlog || ring->unreleased_bytes() > ring_bytes / 2);
  }
  FrameNode* first = nullptr;  // in place and not handed out, oldest first
  FrameNode* last = nullptr;
  std::vector<Binding> slots;

  void append(FrameNode* node) noexcept;
  void unlink(FrameNode* node) noexcept;
};

/// Rows of one shuffle for one worker. Exists from the first OPEN or from the worker's own open,
/// whichever is first, until the shuffle is closed here and every sender that opened has finished,
/// or the query is over.
class Inbox {
 public:
  /// From one sender.
  struct Stream {
    FrameNode* first = nullptr;
    FrameNode* last = nullptr;
    FrameNode* aside = nullptr;  // the last in the queue that lies in overflow, if any
    InLane* lane = nullptr;      // while bound: where its slot is
    uint16_t slot = 0;
    bool bound = false;
    bool finish_seen = false;
    bool finished = false;  // finish_seen and everything handed out; counted once
    bool end_told = false;  // the engine, of this stream alone
    bool active = false;    // in the list of streams with frames
    Stream* next_active = nullptr;
    uint32_t row_bytes =
        0;  // as its sender says; once the shuffle is open, the same as the inbox's
    wire::OpenPayload opened{};  // by its sender
    uint64_t format = 0;         // of its rows, the digest of what it has said; 0: nothing
    uint64_t rows_received = 0;
    uint64_t rows_promised = 0;  // by FINISH
    Stored assembly;             // a row that arrives in fragments
    uint64_t assembled_bytes = 0;
  };

  /// `maker`: the node whose worker sent first, or the own one.
  Inbox(std::shared_ptr<Query> query, uint32_t stage, uint32_t maker, uint32_t worker_count)
      : made_by(maker), query_(std::move(query)), stage_(stage), streams_(worker_count) {}

  const uint32_t made_by;

  const std::shared_ptr<Query>& query() const { return query_; }
  uint32_t stage() const { return stage_; }
  Stream& stream(uint32_t sender) { return streams_[sender]; }
  std::vector<Stream>& streams() { return streams_; }

  /// Adds a frame to its sender's queue.
  void append(FrameNode* node) noexcept;
  /// The next stream that has frames, taking turns; nullptr if none has.
  Stream* active() noexcept { return first_active_; }
  /// Takes the first frame of a stream out of its queue.
  FrameNode* pop(Stream& stream) noexcept;
  /// Takes the one behind `before` out.
  static void remove_behind(Stream& stream, FrameNode* before) noexcept;

  /// The worker's own open: who sends. Null before.
  const std::vector<uint32_t>* senders = nullptr;
  bool is_sender(uint32_t worker) const;
  StageLists lists;  // as the worker opened it; stays. No receivers: it has not
  bool agrees(const wire::OpenPayload& opened) const noexcept {
    return lists.receiver_count == 0 || lists.digest == opened.lists;
  }
  RowFormat format;  // as the worker reads the rows; stays
  RowFormat heard;   // what the first sender has said that says anything
  /// What a sender has said: its words, if they are known.
  RowFormat format_of(const Stream& stream) const {
    return stream.format == heard.digest ? heard : RowFormat{stream.format, {}};
  }
  /// Of those that the worker named, who has not sent OPEN. Threads: while it is open.
  std::vector<uint32_t> unopened_senders() const;
  /// When to ask next for senders that have not opened it.
  base::Nanoseconds ask_at = 0;
  uint32_t row_bytes = 0;
  bool open = false;            // a ShuffleCore uses it
  bool discarding = false;      // whatever still comes is dropped
  uint32_t bound_count = 0;     // streams whose slot is bound
  uint32_t finished_count = 0;  // streams that are finished

 private:
  std::shared_ptr<Query> query_;
  uint32_t stage_;
  std::vector<Stream> streams_;  // by worker number
  Stream* first_active_ = nullptr;
  Stream* last_active_ = nullptr;

  void activate(Stream& stream) noexcept;
  void deactivate(Stream& stream) noexcept;
};

}  // namespace faro::shuffle
