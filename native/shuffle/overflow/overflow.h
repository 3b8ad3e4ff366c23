// Overflow: where rows are spilled, first in memory, then in a file. One per node, shared by its
// workers.
//
// What is counted is what is taken: of memory the block, what the allocator keeps beside it and the
// node that describes it, of the file whole blocks of the disk. So that small frames do not take many
// times their bytes, a block can have room for more, and frames of one sender that follow each other are
// packed into it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "counters/records.h"
#include "faro/status.h"
#include "shuffle/overflow/spill_file.h"

namespace faro::shuffle {

/// What one query has in overflow on this node, in memory and in the file. Threads: any.
struct OverflowUsage {
  std::atomic<uint64_t> bytes{0};
  std::atomic<bool> in_file{false};  // some were, at any time
};

/// What overflow may take on one node.
struct OverflowLimits {
  uint64_t memory_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t query_bytes = 0;  // of one query, memory and file together; 0: as much as there is

  /// Memory that may be taken beyond memory_bytes to describe what lies in the file.
  constexpr uint64_t describing_bytes() const noexcept {
    return file_bytes == 0 ? 0 : std::max<uint64_t>(file_bytes / 128, uint64_t{64} << 10);
  }
  constexpr uint64_t most_memory_bytes() const noexcept {
    return memory_bytes > UINT64_MAX - describing_bytes() ? UINT64_MAX
                                                          : memory_bytes + describing_bytes();
  }
};

struct SharedBlock;

/// Spilled bytes. Whoever holds it gives it back with Overflow::free; moving leaves an empty one
/// behind.
struct Stored {
  enum class Place : uint8_t { none, memory, file, mapped, shared };

  Place place = Place::none;
  std::byte* memory = nullptr;  // place memory, mapped; shared: null until it is loaded
  Extent extent;                // place file, mapped
  uint64_t bytes = 0;           // in use
  uint64_t room = 0;            // of the block
  OverflowUsage* usage = nullptr;
  SharedBlock* block = nullptr;  // place shared: what is held together with others

  uint64_t room_left() const noexcept { return room - bytes; }
};

/// A block that several hold, each by a Stored of its own, which is freed by itself.
struct SharedBlock {
  std::atomic<uint32_t> holders{1};
  std::mutex loading;
  Stored stored;  // guarded by `loading` while there are several holders
};

/// Threads: any; one thread at a time per Stored. Blocks: file I/O when memory is full; never on
/// the row path. Throws nothing but from the texts of errors (std::bad_alloc), and then nothing has
/// changed.
class Overflow {
 public:
  /// Rows are packed into blocks up to this size, which is also the largest batch of packed frames. A block with a part of a
  /// large row may be larger.
  static constexpr uint64_t kPackedBytes = uint64_t{64} << 10;
  /// Counted for each Stored: whoever holds it has a node for it (FrameNode, QueuedFrame), and the
  /// file keeps what it knows of its part.
  static constexpr uint64_t kDescriptionBytes = 256;
  /// What the allocator keeps beside a block.
  static constexpr uint64_t kAllocatorBytes = 16;

  Overflow(const OverflowLimits& limits, std::unique_ptr<SpillFile> file)
      : limits_(limits), file_(std::move(file)) {}

  /// Shows what is in use in `counters` from now on, which outlives this. Threads: before any other
  /// call.
  void show_in(counters::NodeCounters& counters) noexcept { counters_ = &counters; }

  /// A block of `bytes` bytes, all in use, that can be written at once; also used for outgoing frames
  /// and assembled rows. Beyond the memory budget it is a mapped part of the file. Errors:
  /// overflow_exhausted, naming the limits.
  Status allocate(OverflowUsage& usage, uint64_t bytes, Stored& out);

  /// Allocates in memory, and never in the file: for what is written as often as rows are. Errors: overflow_exhausted, naming the
  /// limits.
  Status allocate_in_memory(OverflowUsage& usage, uint64_t bytes, Stored& out);

  /// A block of `bytes` bytes, more than before, all in use, in place of `stored`, whose bytes lie at its start. Errors:
  /// overflow_exhausted (unchanged then).
  Status grow(Stored& stored, uint64_t bytes);

  /// Spills bytes: memory, else file. If there is much, the block has room for `room` bytes.
  /// Errors: overflow_exhausted.
  Status store(OverflowUsage& usage, std::span<const std::byte> bytes, uint64_t room, Stored& out);

  /// Spills bytes as `store` does, but only to memory, and only while half as much of it stays free as the query then has in
  /// overflow: two thirds of the memory for one query alone, two fifths each for two. False: it would not.
  bool store_if_plenty(OverflowUsage& usage, std::span<const std::byte> bytes, uint64_t room,
                       Stored& out) noexcept;

  /// Spills bytes to the file, also while there is memory. `room`: as for `store`. Errors: overflow_exhausted.
  Status store_in_file(OverflowUsage& usage, std::span<const std::byte> bytes, uint64_t room,
                       Stored& out);

  /// What a block of `room` bytes takes in memory, all that is counted for it included.
  static constexpr uint64_t taken_in_memory(uint64_t room) noexcept {
    return ((room + 15) & ~uint64_t{15}) + kAllocatorBytes + kDescriptionBytes;
  }

  /// Adds bytes for which `stored` has room. Errors: overflow_exhausted if the file cannot be written
  /// (unchanged then).
  Status append(Stored& stored, std::span<const std::byte> bytes);

  /// Only the first `bytes` bytes are in use any more; gives back what is worth a copy.
  void shrink(Stored& stored, uint64_t bytes) noexcept;

  /// Makes `stored.memory` readable: brings it back into memory, or maps it where there is no room
  /// for it. Errors: overflow_exhausted if the file cannot be read or mapped.
  Status load(Stored& stored);

  /// Copies all bytes in use to memory of the caller's, which has as many: `stored` stays where it is, and takes no memory of
  /// overflow. Errors: overflow_exhausted if the file cannot be read.
  Status read(const Stored& stored, std::span<std::byte> to) const;

  /// From now on `stored` can be held by several. What that takes is charged as a description. Errors: overflow_exhausted
  /// (unchanged then). Throws: std::bad_alloc (unchanged then).
  Status make_shared(Stored& stored);
  /// Another one for the bytes of one that is shared, which stay until the last is freed. Nothing more is charged.
  Stored share(const Stored& stored) noexcept;

  void free(Stored& stored) noexcept;

  /// Whether what `bytes` more take in the file, the last resort, is above what one query may have.
  bool is_above_query_limit(const OverflowUsage& usage, uint64_t bytes) const noexcept;

  const OverflowLimits& limits() const noexcept { return limits_; }
  uint64_t memory_bytes() const noexcept { return used_.load(std::memory_order_relaxed); }
  uint64_t memory_peak_bytes() const noexcept { return peak_.load(std::memory_order_relaxed); }
  const SpillFile& file() const noexcept { return *file_; }

 private:
  /// Who may take memory: whoever needs it, or a query while half as much stays free as it has.
  enum class Need : uint8_t { any, plenty };

  bool charge(OverflowUsage& usage, uint64_t bytes) noexcept;
  bool take_memory(uint64_t bytes, uint64_t limit) noexcept;
  void give_memory(uint64_t bytes) noexcept;
  bool allocate_memory(OverflowUsage& usage, uint64_t bytes, uint64_t room, Need need,
                       Stored& out) noexcept;
  uint64_t room_within(uint64_t limit, uint64_t bytes, uint64_t room) const noexcept;
  bool store_in_memory(OverflowUsage& usage, std::span<const std::byte> bytes, uint64_t room,
                       Need need, Stored& out) noexcept;
  bool grow_memory(Stored& stored, uint64_t bytes) noexcept;
  Status allocate_file(OverflowUsage& usage, uint64_t bytes, uint64_t room, Stored& out);
  Result<Extent> take_file(uint64_t bytes);
  void give_file(const Extent& extent) noexcept;
  void free_shared(Stored& stored) noexcept;
  Status above_query_limit(const OverflowUsage& usage, uint64_t bytes) const;
  void show_memory() noexcept;
  void show_file() noexcept;

  const OverflowLimits limits_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
  std::unique_ptr<SpillFile> file_;
  counters::NodeCounters* counters_ = nullptr;
};

/// A block of Overflow's memory, which goes back with it.
class StoredBlock {
 public:
  StoredBlock() = default;
  StoredBlock(Overflow& overflow, Stored stored) noexcept
      : overflow_(&overflow), stored_(std::move(stored)) {}
  StoredBlock(StoredBlock&& other) noexcept { *this = std::move(other); }
  StoredBlock& operator=(StoredBlock&& other) noexcept {
    std::swap(overflow_, other.overflow_);
    std::swap(stored_, other.stored_);
    other.free();
    return *this;
  }
  ~StoredBlock() { free(); }

  /// Null: it is empty.
  std::byte* memory() const noexcept { return stored_.memory; }
  uint64_t bytes() const noexcept { return stored_.bytes; }

 private:
  void free() noexcept {
    if (overflow_ != nullptr) std::exchange(overflow_, nullptr)->free(stored_);
  }

  Overflow* overflow_ = nullptr;  // null: it is empty
  Stored stored_;
};

}  // namespace faro::shuffle
