// ReceivedFrames: releases the memory of received frames, in the ring or in overflow.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "faro/status.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/in_ring.h"

namespace faro::shuffle {

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

/// The frames of one worker. Threads: the worker, except where said.
class ReceivedFrames {
 public:
  explicit ReceivedFrames(const WorkerContext& worker) : worker_(worker) {}

  /// There are that many rings. Throws: std::bad_alloc.
  void reserve(size_t rings) { unsent_.reserve(rings); }
  /// Nobody is there any more to be told what was released of the rings from a node.
  void forget_releases(uint32_t node) noexcept {
    std::erase_if(unsent_, [&](const InRing* ring) { return ring->sender_node == node; });
  }

  /// A node for one more frame. Throws: std::bad_alloc.
  FrameNode* take();
  /// Gives back the node of a frame whose bytes were released or moved.
  void give(FrameNode* node) noexcept { pool_.give(node); }

  /// Reads rows back that lie in the file. False: they cannot be read, and the query has failed.
  bool make_readable(Query& query, FrameNode& node);
  /// Releases a frame, in the ring or in overflow, and its node. `handed_out`: the engine had it; else it is dropped.
  void release(FrameNode* node, bool handed_out) noexcept;
  void release_in_ring(InRing& ring, uint32_t token) noexcept;
  /// Copies a handed-out frame to overflow and releases its space in the ring. Errors: overflow_exhausted.
  Status detach(Query& query, FrameNode* node);

  /// Notes that the sender of `ring` may not know of every release.
  void note_unsent_release(InRing& ring) noexcept;
  /// Tells all senders what was released.
  void tell_releases();

  void handed_out(FrameNode* node) noexcept {
    if (node->ring != nullptr) set_held(held() + 1);
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
  std::vector<InRing*> unsent_;  // rings with releases that the sender may not know
  std::atomic<uint32_t> held_{0};
};

}  // namespace faro::shuffle
