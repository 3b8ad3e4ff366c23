// Inbox: the rows of one shuffle that have arrived at one worker.
//
// Each frame becomes a FrameNode in the queue of its shuffle and sender as soon as the worker looks at its ring, and
// stays where it lies until it is handed out and released, or, when the ring is needed for others, copied to overflow
// (native/DESIGN.md#inv-2). The queue of a sender is in order whether its frames lie in the ring or in overflow
// (native/DESIGN.md#hc-4). Frames with rows that are copied one after the other are packed: one FrameNode for all that fit
// into its block (Overflow::kPackedBytes), and one for the fragments of a large row, which so may need no copy when it is received.
//
//   InRing  ──frames in place, oldest first──▶  FrameNode ◀──queue per sender──  Inbox::SenderQueue
//
// Threads: everything here belongs to the worker.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shuffle/operation/blocked_on.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/query/query.h"
#include "shuffle/query/row_format.h"
#include "shuffle/query/shuffle_counts.h"
#include "shuffle/query/stage_lists.h"
#include "shuffle/receive/in_ring.h"
#include "wire/frame.h"

namespace faro::shuffle {

/// Rows of one shuffle for one worker. Exists from the first OPEN or from the worker's own open,
/// whichever is first, until the shuffle is closed here and every sender that opened has finished,
/// or the query is over.
class Inbox final : public AwaitedSenders {
  static constexpr uint32_t kGroup = ReceivedBySender::kGroup;

 public:
  /// A row that arrives in fragments, as much of it as there is room for yet.
  struct Assembly {
    Stored stored;
    std::byte* given =
        nullptr;               // memory of the engine's for the whole row; null: it is in overflow
    uint64_t bytes = 0;        // that have come
    uint64_t whole_bytes = 0;  // of the row, as its sender says

    bool is_begun() const noexcept {
      return given != nullptr || stored.place != Stored::Place::none;
    }
    std::byte* memory() const noexcept { return given != nullptr ? given : stored.memory; }
  };

  /// From one sender.
  struct SenderQueue {
    FrameNode* first = nullptr;
    FrameNode* last = nullptr;
    FrameNode* last_spilled = nullptr;  // the last in the queue that lies in overflow, if any
    InRing* ring = nullptr;             // while bound: where its slot is
    uint16_t slot = 0;
    bool bound = false;
    bool finish_seen = false;
    bool finished = false;  // finish_seen and everything handed out; counted once
    bool end_told = false;  // the engine, of this queue alone
    bool active = false;    // in the list of queues with frames
    SenderQueue* next_active = nullptr;
    uint32_t row_bytes =
        0;  // as its sender says; once the shuffle is open, the same as the inbox's
    wire::OpenPayload opened{};            // by its sender
    Delivery delivery = Delivery::worker;  // as its sender says
    uint64_t format = 0;  // of its rows, the digest of what it has said; 0: nothing
    uint32_t index = 0;   // of the sender in the list of the worker's own open
    uint64_t rows_received = 0;
    Assembly assembly;

    /// FINISH has come, and every frame was handed out: Inboxes::finish has to count it.
    bool ends() const noexcept { return finish_seen && !finished && first == nullptr; }
  };

  /// `maker`: the node whose worker sent first, or the own one.
  Inbox(std::shared_ptr<Query> query, uint32_t stage, uint32_t maker, uint32_t worker_count)
      : made_by(maker),
        query_(std::move(query)),
        stage_(stage),
        queues_(ReceivedBySender::groups(worker_count)),
        received_(std::make_shared<ReceivedBySender>(worker_count)) {}

  const uint32_t made_by;

  const std::shared_ptr<Query>& query() const { return query_; }
  uint32_t stage() const { return stage_; }
  /// Made by the first call. Throws: std::bad_alloc.
  SenderQueue& queue(uint32_t sender);
  /// Null: it was not made, nothing has come.
  const SenderQueue* find(uint32_t sender) const noexcept {
    const auto& group = queues_[sender / kGroup];
    return group == nullptr ? nullptr : &(*group)[sender % kGroup];
  }
  SenderQueue* find(uint32_t sender) noexcept {
    return const_cast<SenderQueue*>(std::as_const(*this).find(sender));
  }
  /// Visits the queues that were made, by sender.
  template <typename Visit>
  void for_each_queue(Visit&& visit) {
    for (uint32_t group = 0; group < queues_.size(); ++group) {
      for (uint32_t i = 0; queues_[group] != nullptr && i < kGroup; ++i)
        visit(group * kGroup + i, (*queues_[group])[i]);
    }
  }
  /// What has come from each sender, also before the shuffle is opened here.
  const std::shared_ptr<ReceivedBySender>& received() const noexcept { return received_; }

  /// Adds a frame to its sender's queue.
  void append(FrameNode* node) noexcept;
  /// The next queue that has frames, taking turns; nullptr if none has.
  SenderQueue* active() const noexcept { return first_active_; }
  /// Takes the first frame out of a queue.
  FrameNode* pop(SenderQueue& queue) noexcept;
  /// Takes the one behind `before` out.
  static void remove_behind(SenderQueue& queue, FrameNode* before) noexcept;

  /// The worker has opened it: who sends, in the order by which SenderQueue::index counts.
  void name_senders(const std::vector<uint32_t>& named) noexcept;
  const std::vector<uint32_t>* senders = nullptr;  // null: it has not, or has closed it
  bool is_sender(uint32_t worker) const;
  bool awaits(uint32_t sender_worker) const noexcept override {
    const SenderQueue* const queue = find(sender_worker);
    return is_sender(sender_worker) && (queue == nullptr || !queue->finished);
  }
  StageLists lists;  // as the worker opened it; stays. No receivers: it has not
  bool agrees(const wire::OpenPayload& opened) const noexcept {
    return lists.receiver_count == 0 || lists.digest == opened.lists;
  }
  RowFormat format;  // as the worker reads the rows; stays
  RowFormat heard;   // what the first sender has said that says anything
  /// What a sender has said: its words, if they are known.
  RowFormat format_of(const SenderQueue& queue) const {
    return queue.format == heard.digest ? heard : RowFormat{queue.format, {}};
  }
  /// The senders that the worker named and that have not sent OPEN. Threads: the worker's, while it
  /// is open.
  std::vector<uint32_t> unopened_senders() const;
  /// When to ask next for senders that have not opened it.
  base::Nanoseconds ask_at = 0;
  uint32_t row_bytes = 0;
  bool open = false;                  // a StageReceiver uses it
  bool discarding = false;            // whatever still comes is dropped
  bool taken_from = false;            // frames were received, or dropped
  bool is_taken_in_exchange = false;  // by the worker's call that waits: not to be spilled
  uint32_t finished_count = 0;        // queues that are finished

 private:
  std::shared_ptr<Query> query_;
  uint32_t stage_;
  // The queues of workers with numbers close by; null: nothing has come of any of them.
  std::vector<std::unique_ptr<std::array<SenderQueue, ReceivedBySender::kGroup>>> queues_;
  const std::shared_ptr<ReceivedBySender> received_;
  SenderQueue* first_active_ = nullptr;
  SenderQueue* last_active_ = nullptr;

  void index(uint32_t group) noexcept;
  void activate(SenderQueue& queue) noexcept;
  void deactivate(SenderQueue& queue) noexcept;
};

}  // namespace faro::shuffle
