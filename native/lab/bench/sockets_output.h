// Output: frames of the sockets baseline on their way to one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace faro::bench {

/// A cache line of its own, as all are written in random order. The memory is the worker's.
struct alignas(64) Output {
  enum class Target : uint8_t { own_stage1, own_stage2, local, remote };

  void set_memory(char* to, uint32_t bytes, uint32_t frame_bytes) noexcept {
    memory = begin = cursor = to;
    limit = to + bytes - frame_bytes;
  }
  bool has_room() const noexcept { return cursor <= limit; }
  /// Nothing waits. Of own_stage2 only clear() says so.
  bool is_empty() const noexcept { return begin == cursor; }
  size_t waiting_bytes() const noexcept { return static_cast<size_t>(cursor - begin); }
  void clear() noexcept { begin = cursor = memory; }
  /// The first bytes are sent, or handled.
  void take(size_t bytes) noexcept {
    begin += bytes;
    if (is_empty()) clear();
  }
  /// Makes the space before what waits usable.
  void move_to_front() noexcept {
    const size_t left = waiting_bytes();
    std::memmove(memory, begin, left);
    begin = memory;
    cursor = memory + left;
  }

  char* cursor = nullptr;  // where the next frame goes
  char* limit = nullptr;   // the last place where a frame still fits
  char* begin = nullptr;   // the first byte that is not sent (own_stage1: handled) yet
  char* memory = nullptr;
  uint32_t index = 0;  // of a connection, or a worker's number within this process
  Target target = Target::remote;
};

}  // namespace faro::bench
