// PartitionStore: rows of an operator by partition, in memory or spilled. PartitionReader: takes
// them out again. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "faro/detail/operator_part.h"
#include "faro/outcome.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// Rows of any width in 2^bits partitions, in blocks that grow with their partition.
/// Where there is no memory for a block the largest partition of the operator is spilled. An
/// operator may have several stores.
///
/// Threads: those of the worker. Owns: its memory and what it has spilled, until destruction, which
/// comes before that of its OperatorPart.
class PartitionStore {
 public:
  /// The first block of a partition; it is larger for a row that is.
  static constexpr size_t kFirstBlockBytes = 4096;
  static constexpr size_t kMostBlockBytes = size_t{64} << 10;

  /// What a store takes at least, for the reserve of its operator: one block per partition.
  static constexpr uint64_t least_bytes(uint32_t bits, size_t row_bytes) noexcept {
    const uint64_t block = row_bytes < kFirstBlockBytes ? kFirstBlockBytes : row_bytes;
    return block << bits;
  }

  PartitionStore(OperatorPart& part, uint32_t bits);
  ~PartitionStore();
  PartitionStore(const PartitionStore&) = delete;
  PartitionStore& operator=(const PartitionStore&) = delete;

  /// Copies a row to its partition. False: there was no room, and the operator has failed.
  template <typename Row>
  bool append(uint32_t partition, const Row& row) {
    Cursor& cursor = cursors_[partition];
    if (static_cast<size_t>(cursor.end - cursor.at) < sizeof(Row)) [[unlikely]] {
      if (!make_room(partition, sizeof(Row))) return false;
    }
    std::memcpy(cursor.at, &row, sizeof(Row));
    cursor.at += sizeof(Row);
    return true;
  }

  /// Where a row of as many bytes goes, which the caller writes there at once. Null: there was no
  /// room, and the operator has failed.
  std::byte* place(uint32_t partition, size_t bytes) {
    Cursor& cursor = cursors_[partition];
    if (static_cast<size_t>(cursor.end - cursor.at) < bytes) [[unlikely]] {
      if (!make_room(partition, bytes)) return nullptr;
    }
    return std::exchange(cursor.at, cursor.at + bytes);
  }

  uint32_t bits() const noexcept { return bits_; }
  uint32_t partition_count() const noexcept { return uint32_t{1} << bits_; }
  /// Bytes of rows, spilled ones included.
  uint64_t row_bytes(uint32_t partition) const noexcept;
  /// Bytes of rows that were spilled and not read yet.
  uint64_t spilled_bytes(uint32_t partition) const noexcept;
  /// The rows of a partition that are in memory, by block; empty: there is no such block. Valid
  /// until rows are added or taken out.
  std::span<const std::byte> block(uint32_t partition, size_t index) const noexcept;
  /// Memory that a partition takes.
  uint64_t memory_bytes(uint32_t partition) const noexcept;
  /// The partition that takes most memory.
  uint32_t largest() const noexcept;
  /// Spills all rows of a partition that are in memory. False: the operator has failed.
  bool spill(uint32_t partition);
  /// Lets go of all rows of a partition.
  void clear(uint32_t partition) noexcept;

 private:
  friend class PartitionReader;
  struct Cursor {
    std::byte* at = nullptr;
    std::byte* end = nullptr;
  };
  struct Block {
    std::byte* memory = nullptr;
    uint64_t room = 0;
    uint64_t used = 0;  // of the last block of a partition its cursor knows
  };
  struct Partition;

  bool make_room(uint32_t partition, size_t row_bytes);
  bool add_block(uint32_t partition, size_t row_bytes);
  void close_block(uint32_t partition) noexcept;
  Block pop_block(uint32_t partition) noexcept;
  void free(Block& block) noexcept;

  OperatorPart& part_;
  const uint32_t bits_;
  std::unique_ptr<Cursor[]> cursors_;
  std::unique_ptr<Partition[]> partitions_;
};

/// Takes the rows of a partition out of its store, block by block: those in memory first, in no
/// particular order. What was read is given back. Rows that it has not come to may be spilled
/// meanwhile, and others may be added.
///
/// Threads: those of the worker. Valid as long as the store.
class PartitionReader {
 public:
  /// What it takes where there are spilled rows, for the reserve of its operator.
  static constexpr uint64_t least_bytes(size_t row_bytes) noexcept {
    return row_bytes < PartitionStore::kMostBlockBytes ? PartitionStore::kMostBlockBytes
                                                       : row_bytes;
  }

  PartitionReader(PartitionStore& store, uint32_t partition)
      : store_(store), partition_(partition) {}
  ~PartitionReader();
  PartitionReader(const PartitionReader&) = delete;
  PartitionReader& operator=(const PartitionReader&) = delete;

  /// The next rows, as many as a block has; valid until the next call. end_of_stream: there are no
  /// more, and the partition is empty. failed: the operator has failed.
  Outcome next(std::span<const std::byte>& rows);

 private:
  Outcome read_spilled(std::span<const std::byte>& rows);

  PartitionStore& store_;
  const uint32_t partition_;
  PartitionStore::Block block_;   // that is being read
  PartitionStore::Block buffer_;  // for spilled rows
};

}  // namespace faro::detail

#pragma GCC visibility pop
