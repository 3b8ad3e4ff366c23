// Delivery: which frame of an inbox the engine gets next; puts the fragments of a large row together.
#pragma once

#include "shuffle/operation/operation.h"
#include "shuffle/operation/wait_loop.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/inbox.h"
#include "shuffle/receive/inboxes.h"
#include "shuffle/receive/received_frames.h"

namespace faro::shuffle {

/// Threads: the worker.
class Delivery {
 public:
  Delivery(const WorkerContext& worker, Operation& operation, WaitLoop& wait_loop, Inboxes& inboxes,
           ReceivedFrames& frames)
      : worker_(worker),
        operation_(operation),
        wait_loop_(wait_loop),
        inboxes_(inboxes),
        frames_(frames) {}

  /// The next frame of a stream (nullptr: of any, which take turns) that can be handed out; nullptr if there is
  /// none now, or the query has failed.
  FrameNode* next(Inbox& inbox, Inbox::Stream* only);

 private:
  FrameNode* take_whole(Inbox& inbox, Inbox::Stream& stream);
  FrameNode* assemble(Inbox& inbox, Inbox::Stream& stream);
  bool continues_row(const Inbox& inbox, const Inbox::Stream& stream, const FrameNode& node) const;
  bool make_room(Inbox& inbox, Inbox::Stream& stream, const FrameNode& node);
  bool append_fragment(Inbox& inbox, Inbox::Stream& stream);
  FrameNode* finish_row(Inbox::Stream& stream, uint32_t sender);
  bool make_readable(Inbox& inbox, FrameNode& node);

  const WorkerContext& worker_;
  Operation& operation_;
  WaitLoop& wait_loop_;
  Inboxes& inboxes_;
  ReceivedFrames& frames_;
};

}  // namespace faro::shuffle
