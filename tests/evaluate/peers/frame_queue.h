// A bounded queue of frames within one thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "frame_carrier.h"

namespace faro::evaluate {

/// Threads: one. Owns: its memory.
class FrameQueue {
 public:
  static constexpr size_t kFrames = 4;

  /// Memory for the next frame; null while the queue is full.
  std::byte* try_open() noexcept { return end_ - begin_ < kFrames ? memory_of(end_) : nullptr; }
  void push(size_t bytes) noexcept { bytes_[end_++ % kFrames] = bytes; }

  FrameCarrier::Arrived front() const noexcept {
    if (begin_ == end_) return {};
    return {true, {memory_of(begin_), bytes_[begin_ % kFrames]}};
  }
  void pop() noexcept { ++begin_; }

 private:
  std::byte* memory_of(size_t frame) const noexcept {
    return memory_.get() + frame % kFrames * kFrameBytes;
  }

  std::unique_ptr<std::byte[]> memory_ = std::make_unique<std::byte[]>(kFrames * kFrameBytes);
  size_t bytes_[kFrames] = {};
  size_t begin_ = 0;  // these two only grow
  size_t end_ = 0;
};

}  // namespace faro::evaluate
