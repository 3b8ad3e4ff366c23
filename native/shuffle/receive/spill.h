// Spill: copies frames that nobody polls from their rings to overflow (DESIGN.md HC-3).
#pragma once

#include <cstdint>

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

  /// All that lies in a ring but what is handed out. Returns whether there was any, and room for it.
  bool spill(InRing& lane);

 private:
  Status spill_oldest(InRing& lane);

  const WorkerContext& worker_;
  Operation& operation_;
  ReceivedFrames& frames_;
};

}  // namespace faro::shuffle
