// What a peer does for one worker of the two-stage job: it carries frames, runs of rows of one stage,
// to other workers. How rows get into frames is the same for every peer (frame_worker.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace faro::evaluate {

/// Bytes of a frame at most: the threshold at which Faro starts a transfer, unless told otherwise.
inline constexpr size_t kFrameBytes = 16 * 1024;
inline constexpr uint32_t kStages = 2;  ///< numbered 0 and 1 here

/// Frames of one sender, stage and receiver arrive in order. Nothing waits.
/// Threads: that of its worker.
class FrameCarrier {
 public:
  virtual ~FrameCarrier() = default;

  /// Memory of kFrameBytes for the next frame of `stage` to worker `to`; null while there is none.
  virtual std::byte* try_open(uint32_t stage, uint32_t to) = 0;

  /// Sends the first `bytes` of the frame that is open; none: the end of the stage. False while it
  /// cannot: the frame stays open.
  virtual bool try_send(uint32_t stage, uint32_t to, size_t bytes) = 0;

  struct Arrived {
    bool any = false;
    std::span<const std::byte> rows;  ///< valid until release
  };
  /// The next frame of `stage`, of any sender. One at a time per stage.
  virtual Arrived try_receive(uint32_t stage) = 0;
  virtual void release(uint32_t stage) = 0;
};

}  // namespace faro::evaluate
