// Spill: copies frames that nobody receives from their rings to overflow (DESIGN.md HC-3).
#pragma once

#include "shuffle/operation/operation.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/in_ring.h"
#include "shuffle/receive/received_frames.h"

namespace faro::shuffle {

/// Threads: the worker.
class Spill {
 public:
  Spill(const WorkerContext& worker, Operation& operation, ReceivedFrames& frames)
      : worker_(worker), operation_(operation), frames_(frames) {}

  /// Copies all frames that lie in a ring and are not handed out. Returns whether any frame moved.
  bool spill(InRing& ring);

 private:
  Status spill_oldest(InRing& ring);

  const WorkerContext& worker_;
  Operation& operation_;
  ReceivedFrames& frames_;
};

}  // namespace faro::shuffle
