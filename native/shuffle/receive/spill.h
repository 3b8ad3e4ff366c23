// Spill: copies frames that nobody receives from their rings to overflow (DESIGN.md HC-3).
#pragma once

#include "shuffle/operation/operation.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/in_ring.h"
#include "shuffle/receive/received_frames.h"

namespace faro::shuffle {

/// How long frames stay in their ring that nobody receives, while a call waits that would find them.
enum class Haste : uint8_t {
  at_once,  // only this worker's own later calls could receive them, and it has begun by sending, or has to end a row first:
            // memory alone
  soon,     // after the drain delay
  late,     // after the longest: whoever makes room for the worker does not wait for these
  never,    // the call that waits takes them by itself
};

/// The drain delay doubles within one wait up to that many times drain.delay_us: without an end to it the time that a plan needs
/// whose rows must be spilled would double with each ring's worth of them. With the defaults a ring then moves on by 2 MiB a
/// second. Rows that are spilled late are so after as long.
inline constexpr base::Nanoseconds kDrainDelayGrowth = 16;
inline base::Nanoseconds longest_drain_delay(const base::Settings& settings) noexcept {
  return kDrainDelayGrowth * settings.drain_delay_us * 1000;
}

/// Threads: the worker.
class Spill {
 public:
  Spill(const WorkerContext& worker, Operation& operation, ReceivedFrames& frames)
      : worker_(worker), operation_(operation), frames_(frames) {}

  /// Copies the frames that lie in a ring, are not handed out, and do not have to stay longer than `after`. Returns
  /// whether any frame moved.
  bool spill(InRing& ring, Haste after);
  /// Whether there are such frames.
  bool has_any(const InRing& ring, Haste after) const noexcept;
  /// Whether those of an inbox that lie in this ring do not have to stay longer than `after`.
  bool may(const InRing& ring, const Inbox& inbox, Haste after) const noexcept {
    return haste_of(ring, inbox) <= after;
  }
  /// Whether some frames of an inbox may have to be copied at once.
  bool may_be_urgent(const Inbox& inbox) const noexcept;

 private:
  bool waits_with(const Inbox& inbox) const noexcept;
  bool sends_first(const Inbox& inbox) const noexcept;
  Haste haste_of(const InRing& ring, const Inbox& inbox) const noexcept;
  bool spill_frame(InRing& ring, FrameNode& node, Haste after);
  Status move(InRing& ring, FrameNode& node);
  bool move_to_memory(InRing& ring, FrameNode& node);
  static FrameNode* packable_before(const FrameNode& node) noexcept;
  void packed(InRing& ring, FrameNode& node, FrameNode& into) noexcept;
  void moved(InRing& ring, FrameNode& node, const Stored& to) noexcept;

  const WorkerContext& worker_;
  Operation& operation_;
  ReceivedFrames& frames_;
};

}  // namespace faro::shuffle
