// Fragments: puts rows together that are larger than a frame (native/DESIGN.md#inv-8).
#pragma once

#include "shuffle/operation/operation.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/inbox.h"
#include "shuffle/receive/received_frames.h"

namespace faro::shuffle {

/// Threads: the worker.
class Fragments {
 public:
  Fragments(const WorkerContext& worker, Operation& operation, ReceivedFrames& frames)
      : worker_(worker), operation_(operation), frames_(frames) {}

  /// Takes the fragments that a queue has. Answers the finished row as a frame of its own; null if the next one has not come, or
  /// has no room, or the query has failed.
  FrameNode* assemble(Inbox& inbox, Inbox::SenderQueue& queue);

 private:
  bool continues_row(const Inbox& inbox, const Inbox::SenderQueue& queue,
                     const FrameNode& node) const;
  bool make_room(Inbox& inbox, Inbox::SenderQueue& queue, const FrameNode& node);
  bool append_first(Inbox& inbox, Inbox::SenderQueue& queue);
  FrameNode* finish_row(Inbox::SenderQueue& queue, uint32_t sender);

  const WorkerContext& worker_;
  Operation& operation_;
  ReceivedFrames& frames_;
};

}  // namespace faro::shuffle
