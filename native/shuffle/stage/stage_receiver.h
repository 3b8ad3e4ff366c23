// StageReceiver: the receiving side of an open shuffle, what is behind faro::ShuffleReceiver and faro::Batch.
#pragma once

#include <cstdint>
#include <string_view>

#include "faro/outcome.h"
#include "faro/shuffle.h"
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/receive/inbox.h"
#include "shuffle/receive/receive_side.h"
#include "shuffle/stage/wait_loop.h"

namespace faro::shuffle {

/// Threads: those of the worker.
class StageReceiver {
 public:
  /// Opens the inbox, which may have rows already.
  StageReceiver(ShuffleContext& shuffle, WaitLoop& wait_loop, ReceiveSide& side,
                Inbox& inbox) noexcept;

  /// Does what ShuffleReceiver::receive says. `only_sender`: an index in the spec's senders, or null for any.
  /// `allocate`: for large rows, as ShuffleReceiver::receive_into says; null: they lie in overflow.
  Outcome receive(Batch& batch, const uint32_t* only_sender, Wait wait,
                  const RowMemory::Allocate* allocate = nullptr);
  /// Does what ShuffleReceiver::stop says (native/DESIGN.md#hc-9).
  Outcome stop() noexcept;
  /// Does what ShuffleReceiver::status says.
  const Status& status() const noexcept { return side_.status(); }
  /// May destroy this object.
  void release(Batch& batch) noexcept;
  /// Whether this is a forked child, where nothing of it may be touched.
  bool forked() const noexcept { return shuffle_.worker().node.forked(); }
  Status detach(Batch& batch);
  /// Rows of one width were read as rows of another.
  void fail_by_width(uint32_t row_bytes, size_t read_as) noexcept;

  /// How the rows are read, for a worker that learns it after it has opened.
  /// Errors: invalid_argument if it was said otherwise before; stage_mismatch if a sender writes
  /// something else: then the query fails.
  Status receive_as(std::string_view format);

  /// The worker's call takes all that comes by itself: it is not spilled.
  void take_in_exchange(bool is_taken) noexcept;
  /// The engine was told every end of stream, or needs none.
  bool is_done() const noexcept;
  void drop_rows() noexcept;
  /// The shuffle is closed.
  void close() noexcept;

 private:
  Outcome attempt(Batch& batch, const uint32_t* only_sender, RowMemory* into);
  FrameNode* next_frame(Inbox::SenderQueue* only, RowMemory* into);
  FrameNode* queued_frame(Inbox::SenderQueue* only, RowMemory* into);
  FrameNode* take_whole(Inbox::SenderQueue& queue);
  Outcome answer_without_frame(Inbox::SenderQueue* only);
  void leave_ring(FrameNode& node);
  void has_left() noexcept;
  void released(const FrameNode& node) noexcept;

  ShuffleContext& shuffle_;
  ShuffleSide side_;
  WaitLoop& wait_loop_;
  ReceiveSide& receive_side_;
  Inbox& inbox_;            // while the shuffle is open
  uint32_t ends_told_ = 0;  // senders whose end of stream the engine was told
  // Where rows are for several workers of the node: one batch that the engine holds, since when, and whether it has held the last one long.
  const FrameNode* timed_ = nullptr;
  base::Nanoseconds timed_since_ = 0;
  bool holds_long_ = false;
  bool stopped_ = false;
  bool closed_ = false;
};

}  // namespace faro::shuffle
