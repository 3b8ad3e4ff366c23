// OperatorMemory: what the operators of one node take together: their memory, and what they spill of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <utility>

#include "faro/status.h"
#include "shuffle/overflow/overflow.h"

namespace faro::shuffle {

/// A budget of memory (operator.memory_bytes), which is taken as it is needed. What does not fit is spilled through overflow: to
/// at most half of its memory, so that draining always has the other half, then to the file.
///
/// Threads: any; one thread at a time per Stored.
class OperatorMemory {
 public:
  /// `check`: whether this machine has that much.
  OperatorMemory(uint64_t limit_bytes, Overflow& overflow, std::function<Status()> check)
      : limit_bytes_(limit_bytes), overflow_(overflow), check_(std::move(check)) {}

  /// Before the first operator of a session is made: whether this machine has as much memory as operators may take. It is looked
  /// at until it has been there once. Errors: resource_limit, with the figures.
  Status check();

  /// What an operator has from its beginning to its end.
  bool reserve(uint64_t bytes) noexcept { return take_within(bytes, limit_bytes_); }
  /// What it has beyond that: an eighth of the budget stays for reserves of operators that come later.
  bool take(uint64_t bytes) noexcept { return take_within(bytes, limit_bytes_ - limit_bytes_ / 8); }
  void give(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// Spills bytes, charged to `usage`. What follows each other is put into one block of overflow of up to
  /// Overflow::kPackedBytes: `last` is the one before, which takes them if it has room; else `made` is a new one. Errors:
  /// overflow_exhausted.
  Status spill(OverflowUsage& usage, std::span<const std::byte> bytes, Stored* last, Stored& made);
  /// Copies what was spilled to `to`. Errors: overflow_exhausted if the file cannot be read.
  Status read(const Stored& stored, std::span<std::byte> to) const {
    return overflow_.read(stored, to);
  }
  void free(Stored& stored) noexcept;

  uint64_t limit_bytes() const noexcept { return limit_bytes_; }
  uint64_t used_bytes() const noexcept { return used_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const noexcept { return peak_.load(std::memory_order_relaxed); }
  /// What was spilled and lies in overflow's memory, all that is counted for it included.
  uint64_t spilled_in_memory() const noexcept {
    return spilled_in_memory_.load(std::memory_order_relaxed);
  }

 private:
  bool take_within(uint64_t bytes, uint64_t limit) noexcept;
  bool take_of_overflow(uint64_t bytes) noexcept;

  const uint64_t limit_bytes_;
  Overflow& overflow_;
  const std::function<Status()> check_;
  std::mutex check_mutex_;
  bool was_checked_ = false;  // under check_mutex_
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
  std::atomic<uint64_t> spilled_in_memory_{0};
};

}  // namespace faro::shuffle
