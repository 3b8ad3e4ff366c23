#include "faro/detail/partition_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/planted.h"
#include "operators/part.h"

namespace faro::detail {

struct PartitionStore::Partition {
  std::vector<Block> blocks;
  std::vector<shuffle::Stored> spilled;
  uint64_t memory_bytes = 0;
  uint64_t spilled_bytes = 0;
};

PartitionStore::PartitionStore(OperatorPart& part, uint32_t bits)
    : part_(part),
      bits_(bits),
      cursors_(std::make_unique<Cursor[]>(partition_count())),
      partitions_(std::make_unique<Partition[]>(partition_count())) {
  part_.part_->add(*this);
}

PartitionStore::~PartitionStore() {
  part_.part_->remove(*this);
  for (uint32_t p = 0; p < partition_count(); ++p) clear(p);
}

uint64_t PartitionStore::row_bytes(uint32_t partition) const noexcept {
  const Partition& of = partitions_[partition];
  uint64_t bytes = of.spilled_bytes;
  if (of.blocks.empty()) return bytes;
  for (size_t i = 0; i + 1 < of.blocks.size(); ++i) bytes += of.blocks[i].used;
  return bytes + static_cast<uint64_t>(cursors_[partition].at - of.blocks.back().memory);
}
uint64_t PartitionStore::spilled_bytes(uint32_t partition) const noexcept {
  return partitions_[partition].spilled_bytes;
}
std::span<const std::byte> PartitionStore::block(uint32_t partition, size_t index) const noexcept {
  const std::vector<Block>& blocks = partitions_[partition].blocks;
  if (index >= blocks.size()) return {};
  std::byte* const memory = blocks[index].memory;
  const bool is_last = index + 1 == blocks.size();
  return {memory, is_last ? static_cast<size_t>(cursors_[partition].at - memory)
                          : static_cast<size_t>(blocks[index].used)};
}
uint64_t PartitionStore::memory_bytes(uint32_t partition) const noexcept {
  return partitions_[partition].memory_bytes;
}
uint32_t PartitionStore::largest() const noexcept {
  uint32_t largest = 0;
  for (uint32_t p = 1; p < partition_count(); ++p) {
    if (memory_bytes(p) > memory_bytes(largest)) largest = p;
  }
  return largest;
}

// The cursor stands in the last block. Where that is closed it has no room.
void PartitionStore::close_block(uint32_t partition) noexcept {
  Partition& of = partitions_[partition];
  if (of.blocks.empty()) return;
  Cursor& cursor = cursors_[partition];
  of.blocks.back().used = static_cast<uint64_t>(cursor.at - of.blocks.back().memory);
  cursor.end = cursor.at;
}

void PartitionStore::free(Block& block) noexcept {
  if (block.memory == nullptr) return;
  ::operator delete(block.memory);
  part_.give(block.room);
  block = {};
}

PartitionStore::Block PartitionStore::pop_block(uint32_t partition) noexcept {
  close_block(partition);
  Partition& of = partitions_[partition];
  const Block block = of.blocks.back();
  of.blocks.pop_back();
  of.memory_bytes -= block.room;
  std::byte* const end =
      of.blocks.empty() ? nullptr : of.blocks.back().memory + of.blocks.back().used;
  cursors_[partition] = {end, end};
  return block;
}

bool PartitionStore::make_room(uint32_t partition, size_t row_bytes) {
  try {
    return add_block(partition, row_bytes);
  } catch (const std::bad_alloc&) {
    (void)part_.fail(Status(Code::overflow_exhausted, "no memory left for rows of an operator"));
    return false;
  }
}

// A large block is taken where there is memory; nothing is spilled for its size.
bool PartitionStore::add_block(uint32_t partition, size_t row_bytes) {
  Partition& of = partitions_[partition];
  const uint64_t least = std::max<uint64_t>(kFirstBlockBytes, row_bytes);
  uint64_t room = std::max<uint64_t>(
      least,
      std::min<uint64_t>(kMostBlockBytes, of.blocks.empty() ? 0 : 2 * of.blocks.back().room));
  if (!part_.try_take(room)) {
    room = least;
    if (!part_.take(room)) {
      (void)part_.fail_for_memory(fmt::format("a block of {} bytes", room));
      return false;
    }
  }
  // The partition itself may have been spilled for it.
  close_block(partition);
  auto* const memory = static_cast<std::byte*>(::operator new(room, std::nothrow));
  if (memory == nullptr) {
    part_.give(room);
    throw std::bad_alloc();
  }
  try {
    of.blocks.push_back({memory, room, 0});
  } catch (...) {
    Block block{memory, room, 0};
    free(block);
    throw;
  }
  of.memory_bytes += room;
  cursors_[partition] = {memory, memory + room};
  return true;
}

bool PartitionStore::spill(uint32_t partition) {
  close_block(partition);
  Partition& of = partitions_[partition];
  while (!of.blocks.empty()) {
    Block& block = of.blocks.back();
    if (block.used > 0 && !part_.part_->spill({block.memory, block.used}, of.spilled)) return false;
    of.spilled_bytes += block.used;
    Block popped = pop_block(partition);
    free(popped);
  }
  return true;
}

void PartitionStore::clear(uint32_t partition) noexcept {
  Partition& of = partitions_[partition];
  for (Block& block : of.blocks) free(block);
  of.blocks.clear();
  of.memory_bytes = 0;
  cursors_[partition] = {};
  for (shuffle::Stored& stored : of.spilled) part_.part_->free(stored);
  of.spilled.clear();
  of.spilled_bytes = 0;
}

// --- reading

PartitionReader::~PartitionReader() {
  store_.free(block_);
  store_.free(buffer_);
}

Outcome PartitionReader::next(std::span<const std::byte>& rows) {
  rows = {};
  const bool is_first = block_.memory == nullptr;
  store_.free(block_);
  PartitionStore::Partition& of = store_.partitions_[partition_];
  if (base::planted(base::Plant::partition_freed) && !is_first && of.blocks.size() == 1)
    store_.clear(partition_);
  while (!of.blocks.empty()) {
    block_ = store_.pop_block(partition_);
    if (block_.used > 0) {
      rows = {block_.memory, block_.used};
      return Outcome::done;
    }
    store_.free(block_);
  }
  if (base::planted(base::Plant::partition_forgotten)) store_.clear(partition_);
  if (of.spilled.empty()) return Outcome::end_of_stream;
  return read_spilled(rows);
}

Outcome PartitionReader::read_spilled(std::span<const std::byte>& rows) {
  OperatorPart& part = store_.part_;
  std::vector<shuffle::Stored>& spilled = store_.partitions_[partition_].spilled;
  const uint64_t bytes = spilled.back().bytes;
  if (buffer_.room < bytes) {
    store_.free(buffer_);
    const uint64_t room = std::max<uint64_t>(bytes, PartitionStore::kMostBlockBytes);
    if (!part.take(room))
      return part.fail_for_memory(fmt::format("{} bytes that it has spilled", room));
    auto* const memory = static_cast<std::byte*>(::operator new(room, std::nothrow));
    if (memory == nullptr) {
      part.give(room);
      return part.fail(Status(Code::overflow_exhausted, "no memory left for rows of an operator"));
    }
    buffer_ = {memory, room, 0};
  }
  if (!part.part_->read(spilled.back(), {buffer_.memory, bytes})) return Outcome::failed;
  part.part_->free(spilled.back());
  spilled.pop_back();
  store_.partitions_[partition_].spilled_bytes -= bytes;
  rows = {buffer_.memory, bytes};
  return Outcome::done;
}

}  // namespace faro::detail
