// Overflow: where rows are set aside, first in memory, then in a file. One per node, shared by its
// workers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "counters/records.h"
#include "faro/status.h"
#include "shuffle/spill_file.h"

namespace faro::shuffle {

/// What one query has in overflow on this node. Threads: any.
struct OverflowUsage {
  std::atomic<uint64_t> bytes{0};
};

/// Bytes set aside. Whoever holds it gives it back with Overflow::free; moving leaves an empty one
/// behind.
struct Stored {
  enum class Place : uint8_t { none, memory, file, mapped };

  Place place = Place::none;
  std::byte* memory = nullptr;  // place memory, mapped; for `file` after load
  Extent extent;                // place file, mapped
  uint64_t bytes = 0;
  OverflowUsage* usage = nullptr;
};

/// Threads: any; one thread at a time per Stored. Blocks: file I/O when memory is full; never on
/// the row path.
class Overflow {
 public:
  Overflow(uint64_t memory_bytes, std::unique_ptr<SpillFile> file)
      : limit_(memory_bytes), file_(std::move(file)) {}

  /// Shows what is in use in `counters` from now on, which outlives this. Threads: before any other
  /// call.
  void show_in(counters::NodeCounters& counters) noexcept { counters_ = &counters; }

  /// Room for `bytes` in memory that can be written at once; also used for outgoing frames and
  /// assembled rows. Beyond the memory budget it is a mapped part of the file if `may_map`, else an
  /// error. Errors: overflow_exhausted, naming both limits.
  Status allocate(OverflowUsage& usage, uint64_t bytes, bool may_map, Stored& out);

  /// Copies bytes aside: memory, else file. Errors: overflow_exhausted.
  Status store(OverflowUsage& usage, std::span<const std::byte> bytes, Stored& out);

  /// Moves what is in memory to the file, so that memory is free for others. Errors:
  /// overflow_exhausted (unchanged then).
  Status spill(Stored& stored);

  /// Makes `stored.memory` readable; for a file that is a copy beyond the budget, at most one frame
  /// or row that is handed out next. Errors: overflow_exhausted if the file cannot be read.
  Status load(Stored& stored);

  void free(Stored& stored) noexcept;

  uint64_t memory_bytes() const noexcept { return used_.load(std::memory_order_relaxed); }
  uint64_t memory_peak_bytes() const noexcept { return peak_.load(std::memory_order_relaxed); }
  const SpillFile& file() const noexcept { return *file_; }

 private:
  bool take_memory(uint64_t bytes) noexcept;
  void give_memory(uint64_t bytes) noexcept;
  Result<Extent> take_file(uint64_t bytes);
  void give_file(const Extent& extent) noexcept;
  void show_memory() noexcept;
  void show_file() noexcept;

  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
  std::unique_ptr<SpillFile> file_;
  counters::NodeCounters* counters_ = nullptr;
};

}  // namespace faro::shuffle
