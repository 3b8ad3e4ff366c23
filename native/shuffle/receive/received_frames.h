// ReceivedFrames: gives the memory of received frames back, in the ring or in overflow.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "faro/status.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/frame_node.h"
#include "shuffle/receive/in_ring.h"

namespace faro::shuffle {

/// The frames of one worker. Threads: the worker, except where said.
class ReceivedFrames {
 public:
  ReceivedFrames(const WorkerContext& worker, size_t lane_count) : worker_(worker) {
    unsent_.reserve(lane_count);
  }

  /// A node for one more. Throws: std::bad_alloc.
  FrameNode* take();
  /// That of a frame whose bytes were given back, or moved.
  void give(FrameNode* node) noexcept { pool_.give(node); }

  /// Gives a frame back that was handed out, or is dropped.
  void release(FrameNode* node, bool handed_out) noexcept;
  void release_in_ring(InRing& lane, uint32_t token) noexcept;
  /// A handed-out frame goes to overflow, and its place in the ring back. Errors: overflow_exhausted.
  Status detach(Query& query, FrameNode* node);

  /// The sender of `lane` may not know of every release.
  void note_unsent_release(InRing& lane) noexcept;
  /// Tells all senders what was released.
  void tell_releases();

  void handed_out(FrameNode* node) noexcept {
    if (node->lane != nullptr) set_held(held() + 1);
  }
  /// Batches in place that the engine holds. Threads: any.
  uint32_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  void set_held(uint32_t held) noexcept {
    held_.store(held, std::memory_order_relaxed);
    counters::set(worker_.counters.held_frames, held);
  }

  const WorkerContext& worker_;
  FramePool pool_;
  std::vector<InRing*> unsent_;  // with releases that the sender may not know
  std::atomic<uint32_t> held_{0};
};

}  // namespace faro::shuffle
