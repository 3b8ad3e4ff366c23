// GroupBlocks: the memory of a shuffle's groups, one block for each that has several receivers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "faro/shuffle.h"
#include "faro/status.h"
#include "shuffle/overflow/overflow.h"
#include "wire/frame.h"

namespace faro::shuffle {

/// Whether the group is a receiver, which needs no block: it has one member, and is the first that has it alone.
class LoneMembers {
 public:
  explicit LoneMembers(uint32_t receiver_count) : taken_(receiver_count) {}
  /// Asked once for each group, in order.
  bool is_receiver(const std::vector<uint32_t>& group) {
    if (group.size() != 1 || taken_[group.front()]) return false;
    return taken_[group.front()] = true;
  }

 private:
  std::vector<bool> taken_;
};

/// Threads: the worker.
class GroupBlocks {
 public:
  /// The bytes of a block: as many as a frame needs that takes a single row.
  static constexpr uint32_t block_bytes(uint64_t ring_bytes) {
    return wire::frame_limit(ring_bytes);
  }
  /// What a block counts as, in overflow.memory_bytes.
  static constexpr uint64_t charged_bytes(uint64_t ring_bytes) {
    return block_bytes(ring_bytes) + Overflow::kAllocatorBytes + Overflow::kDescriptionBytes;
  }

  /// Why these are no groups of the shuffle, which has that many receivers. Errors: invalid_argument, limit_exceeded.
  static Status check(const ShuffleSpec& spec, uint32_t receiver_count);
  /// Allocates and charges a block of `block_bytes` bytes for each of these groups that needs one. They were checked. Errors:
  /// limit_exceeded. The block of Delivery::replicate, which no engine can do without, is a mapped part of the file where there is no
  /// memory. Errors then: overflow_exhausted.
  static Result<GroupBlocks> allocate(const ShuffleSpec& spec,
                                      const std::vector<std::vector<uint32_t>>& groups,
                                      uint32_t receiver_count, Overflow& overflow,
                                      OverflowUsage& usage, uint32_t block_bytes);

  /// The block of the next group that needs one.
  StoredBlock take() noexcept { return std::move(blocks_[taken_++]); }

 private:
  std::vector<StoredBlock> blocks_;
  size_t taken_ = 0;
};

}  // namespace faro::shuffle
