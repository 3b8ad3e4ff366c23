// Overflow: memory up to a budget, then a file, then an error that says what is full. What is counted is
// what is taken.
#include "shuffle/overflow/overflow.h"
#include "support/expect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace faro::shuffle {
namespace {

/// A disk that can be made full or broken.
class ScriptedFile final : public SpillFile {
 public:
  Result<Extent> allocate(uint64_t bytes) override {
    if (full) return Status(Code::overflow_exhausted, "No space left on device");
    const Extent extent{next_, bytes};
    next_ += bytes;
    used_ += bytes;
    contents_[extent.offset].resize(bytes);
    return extent;
  }
  void free(const Extent& extent) noexcept override {
    used_ -= extent.bytes;
    EXPECT_EQ(contents_.erase(extent.offset), 1u) << "freed twice";
  }
  Status write(const Extent& extent, uint64_t at, std::span<const std::byte> bytes) override {
    if (broken) return Status(Code::overflow_exhausted, "cannot write: Input/output error");
    std::vector<std::byte>& to = contents_.at(extent.offset);
    EXPECT_LE(at + bytes.size(), to.size());
    std::copy(bytes.begin(), bytes.end(), to.begin() + static_cast<ptrdiff_t>(at));
    return Status::Ok();
  }
  Status read(const Extent& extent, std::span<std::byte> bytes) override {
    if (broken) return Status(Code::overflow_exhausted, "cannot read: Input/output error");
    const auto& from = contents_.at(extent.offset);
    EXPECT_LE(bytes.size(), from.size());
    std::copy_n(from.begin(), bytes.size(), bytes.begin());
    return Status::Ok();
  }
  std::byte* map(const Extent& extent) override {
    return unmappable ? nullptr : contents_.at(extent.offset).data();
  }
  void unmap(const Extent&, std::byte*) noexcept override { ++unmapped; }
  uint64_t used_bytes() const override { return used_; }
  uint64_t peak_bytes() const override { return used_; }

  bool full = false;
  bool broken = false;
  bool unmappable = false;
  int unmapped = 0;

 private:
  uint64_t next_ = 0;
  uint64_t used_ = 0;
  std::map<uint64_t, std::vector<std::byte>> contents_;
};

struct Disk {
  explicit Disk(uint64_t memory_bytes, uint64_t query_bytes = 0)
      : made(std::make_unique<ScriptedFile>()),
        file(*made),
        overflow({memory_bytes, uint64_t{1} << 30, query_bytes}, std::move(made)) {}
  std::unique_ptr<ScriptedFile> made;
  ScriptedFile& file;
  Overflow overflow;
  OverflowUsage usage;

  void free(std::initializer_list<Stored*> blocks) {
    for (Stored* block : blocks) overflow.free(*block);
  }
  /// Neither memory nor space in the file.
  void expect_nothing_is_taken() const {
    EXPECT_EQ(overflow.memory_bytes(), 0u);
    EXPECT_EQ(file.used_bytes(), 0u);
    EXPECT_EQ(usage.bytes.load(), 0u);
  }
};

// What a block takes in memory, for a number of bytes that is a multiple of 16.
constexpr uint64_t in_memory(uint64_t bytes) {
  return bytes + Overflow::kAllocatorBytes + Overflow::kDescriptionBytes;
}
// And in the file.
constexpr uint64_t in_file(uint64_t blocks) {
  return blocks * kSpillBlock + Overflow::kDescriptionBytes;
}

std::vector<std::byte> filled(size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

std::vector<std::byte> contents(Overflow& overflow, Stored& stored) {
  EXPECT_TRUE(overflow.load(stored).ok());
  return {stored.memory, stored.memory + stored.bytes};
}

Status store(Disk& disk, const std::vector<std::byte>& bytes, Stored& out) {
  return disk.overflow.store(disk.usage, bytes, bytes.size(), out);
}

TEST(Overflow, a_block_that_grows_keeps_its_bytes_and_counts_what_it_takes) {
  Disk disk(in_memory(6400), in_memory(6400));
  Stored block;
  ASSERT_TRUE(disk.overflow.allocate(disk.usage, 640, block).ok());
  std::ranges::fill(std::span(block.memory, 640), std::byte{5});
  ASSERT_TRUE(disk.overflow.grow(block, 6400).ok());
  EXPECT_EQ(block.place, Stored::Place::memory);
  EXPECT_EQ(disk.overflow.memory_bytes(), in_memory(6400));
  EXPECT_EQ(disk.usage.bytes.load(), in_memory(6400));
  EXPECT_EQ(std::vector(block.memory, block.memory + 640), filled(640, 5));
  // Its query may have no more.
  EXPECT_EQ(disk.overflow.grow(block, 64000).code(), Code::overflow_exhausted);
  EXPECT_EQ(block.bytes, 6400u);
  EXPECT_EQ(block.memory[639], std::byte{5});
  disk.free({&block});
  disk.expect_nothing_is_taken();
}

TEST(Overflow, a_block_that_grows_beyond_the_budget_moves_to_the_file) {
  Disk disk(in_memory(640));
  Stored block;
  ASSERT_TRUE(disk.overflow.allocate(disk.usage, 640, block).ok());
  std::ranges::fill(std::span(block.memory, 640), std::byte{5});
  ASSERT_TRUE(disk.overflow.grow(block, 6400).ok());
  EXPECT_EQ(block.place, Stored::Place::mapped);
  EXPECT_EQ(std::vector(block.memory, block.memory + 640), filled(640, 5));
  ASSERT_TRUE(disk.overflow.grow(block, 9000).ok());
  EXPECT_EQ(std::vector(block.memory, block.memory + 640), filled(640, 5));
  disk.free({&block});
  disk.expect_nothing_is_taken();
}

TEST(Overflow, memory_first_and_the_file_beyond_the_budget) {
  Disk disk(1600);
  Stored a, b;
  ASSERT_TRUE(store(disk, filled(640, 1), a).ok());
  ASSERT_TRUE(store(disk, filled(640, 2), b).ok());
  EXPECT_EQ(a.place, Stored::Place::memory);
  EXPECT_EQ(b.place, Stored::Place::file);
  EXPECT_EQ(disk.overflow.memory_bytes(), in_memory(640) + Overflow::kDescriptionBytes);
  EXPECT_EQ(disk.file.used_bytes(), kSpillBlock);
  EXPECT_EQ(disk.usage.bytes.load(), in_memory(640) + in_file(1));
  EXPECT_EQ(contents(disk.overflow, a), filled(640, 1));
  EXPECT_EQ(contents(disk.overflow, b), filled(640, 2));
  disk.free({&a, &b});
  disk.expect_nothing_is_taken();
  EXPECT_EQ(disk.overflow.memory_peak_bytes(), in_memory(640) + Overflow::kDescriptionBytes);
}

TEST(Overflow, exactly_the_budget_fits) {
  Disk disk(in_memory(1600));
  Stored a, b;
  ASSERT_TRUE(store(disk, filled(1600, 1), a).ok());
  EXPECT_EQ(a.place, Stored::Place::memory);
  ASSERT_TRUE(store(disk, filled(1, 1), b).ok());
  EXPECT_EQ(b.place, Stored::Place::file);
  disk.free({&a, &b});
}

TEST(Overflow, what_is_packed_takes_little_more_than_its_bytes) {
  Disk disk(1 << 20);
  Stored packed;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(1, 7), Overflow::kPackedBytes, packed).ok());
  while (packed.room_left() > 0) ASSERT_TRUE(disk.overflow.append(packed, filled(1, 7)).ok());
  EXPECT_EQ(packed.bytes, Overflow::kPackedBytes);
  EXPECT_EQ(disk.usage.bytes.load(), in_memory(Overflow::kPackedBytes));
  EXPECT_LT(disk.usage.bytes.load(), Overflow::kPackedBytes * 101 / 100);
  EXPECT_EQ(contents(disk.overflow, packed), filled(Overflow::kPackedBytes, 7));
  disk.overflow.free(packed);
}

TEST(Overflow, what_is_packed_into_the_file_takes_the_blocks_that_it_fills) {
  Disk disk(0);
  Stored packed;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(1, 7), 3 * kSpillBlock, packed).ok());
  EXPECT_EQ(packed.place, Stored::Place::file);
  while (packed.room_left() > 0) ASSERT_TRUE(disk.overflow.append(packed, filled(1, 7)).ok());
  EXPECT_EQ(disk.file.used_bytes(), 3 * kSpillBlock);
  EXPECT_EQ(disk.overflow.memory_bytes(), Overflow::kDescriptionBytes);
  EXPECT_EQ(contents(disk.overflow, packed), filled(3 * kSpillBlock, 7));
  disk.overflow.free(packed);
  disk.expect_nothing_is_taken();
}

TEST(Overflow, an_append_that_fails_changes_nothing) {
  Disk disk(0);
  Stored packed;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(10, 7), 100, packed).ok());
  disk.file.broken = true;
  EXPECT_EQ(disk.overflow.append(packed, filled(10, 8)).code(), Code::overflow_exhausted);
  disk.file.broken = false;
  EXPECT_EQ(contents(disk.overflow, packed), filled(10, 7));
  disk.overflow.free(packed);
}

// By each query, of what the others have left.
TEST(Overflow, early_rows_leave_half_as_much_memory_free_as_their_query_has) {
  Disk disk(60 * in_memory(1600));
  OverflowUsage other;
  std::vector<Stored> all;
  const auto store_all = [&](OverflowUsage& usage) {
    uint64_t stored = 0;
    for (Stored one; disk.overflow.store_if_plenty(usage, filled(1600, 1), 1600, one); ++stored)
      all.push_back(std::exchange(one, {}));
    return stored;
  };
  EXPECT_EQ(store_all(disk.usage), 40u);
  EXPECT_EQ(store_all(other), 13u);
  EXPECT_EQ(store_all(other), 0u);
  Stored rest;
  EXPECT_TRUE(store(disk, filled(1600, 1), rest).ok());
  EXPECT_EQ(rest.place, Stored::Place::memory) << "what must be spilled may take all";
  EXPECT_EQ(disk.file.used_bytes(), 0u);
  all.push_back(rest);
  for (Stored& one : all) disk.overflow.free(one);
  disk.expect_nothing_is_taken();
  EXPECT_EQ(other.bytes.load(), 0u);
}

TEST(Overflow, early_rows_of_a_query_at_its_limit_are_not_stored) {
  Disk disk(60 * in_memory(1600), in_memory(1600));
  Stored first, second;
  EXPECT_TRUE(disk.overflow.store_if_plenty(disk.usage, filled(1600, 1), 1600, first));
  EXPECT_FALSE(disk.overflow.store_if_plenty(disk.usage, filled(1600, 1), 1600, second));
  EXPECT_EQ(disk.usage.bytes.load(), in_memory(1600));
  disk.free({&first});
  disk.expect_nothing_is_taken();
}

TEST(Overflow, where_there_is_little_a_block_has_no_room_to_spare) {
  Disk disk(16'000);
  Stored stored;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(100, 1), Overflow::kPackedBytes, stored).ok());
  EXPECT_EQ(stored.place, Stored::Place::memory);
  EXPECT_EQ(stored.room, 1000u);
  disk.overflow.free(stored);
}

TEST(Overflow, what_a_frame_does_not_need_is_given_back) {
  Disk disk(1 << 20);
  Stored stored;
  ASSERT_TRUE(disk.overflow.allocate(disk.usage, 8192, stored).ok());
  std::fill_n(stored.memory, 160, std::byte{4});
  disk.overflow.shrink(stored, 160);
  EXPECT_EQ(disk.usage.bytes.load(), in_memory(160));
  EXPECT_EQ(disk.overflow.memory_bytes(), in_memory(160));
  EXPECT_EQ(contents(disk.overflow, stored), filled(160, 4));
  disk.overflow.free(stored);
  disk.expect_nothing_is_taken();
}

TEST(Overflow, what_describes_the_file_is_bounded_too) {
  // Each part takes one block at least; 64 KiB are 256 descriptions.
  OverflowLimits limits{0, 4096 * kSpillBlock, 0};
  EXPECT_EQ(limits.describing_bytes(), 131'072u);
  Overflow overflow(limits, std::make_unique<ScriptedFile>());
  OverflowUsage usage;
  std::vector<Stored> all;
  Status status;
  while (status.ok()) {
    Stored one;
    status = overflow.store(usage, filled(1, 1), 1, one);
    if (status.ok()) all.push_back(one);
  }
  test::expect_error(status, Code::overflow_exhausted,
                     {"too many small parts: 2097152 bytes", "131072 bytes",
                      "overflow.memory_bytes = 0", "overflow.file_bytes = 16777216", "raise"});
  EXPECT_EQ(all.size(), 131'072u / Overflow::kDescriptionBytes);
  EXPECT_EQ(overflow.memory_bytes(), limits.most_memory_bytes());
  for (Stored& one : all) overflow.free(one);
  EXPECT_EQ(overflow.memory_bytes(), 0u);
}

TEST(Overflow, what_finds_no_memory_where_there_is_no_file_is_told_both_settings) {
  Overflow overflow({in_memory(1600), 0, 0}, std::make_unique<ScriptedFile>());
  OverflowUsage usage;
  Stored first, second;
  ASSERT_TRUE(overflow.store(usage, filled(1600, 1), 1600, first).ok());
  const std::string most = std::to_string(in_memory(1600));
  test::expect_error(
      overflow.store(usage, filled(128, 1), 128, second), Code::overflow_exhausted,
      {"overflow is full: " + most + " of overflow.memory_bytes = " + most,
       std::to_string(in_memory(128)) + " more needed", "overflow.file_bytes = 0", "raise"});
  EXPECT_EQ(second.place, Stored::Place::none);
  EXPECT_EQ(usage.bytes.load(), in_memory(1600));
  overflow.free(first);
  EXPECT_EQ(overflow.memory_bytes(), 0u);
}

TEST(Overflow, a_full_disk_is_an_error_that_names_both_limits_and_changes_nothing) {
  Disk disk(100);
  disk.file.full = true;
  Stored stored;
  test::expect_error(store(disk, filled(101, 1), stored), Code::overflow_exhausted,
                     {"No space left on device", "overflow.memory_bytes = 100"});
  EXPECT_EQ(stored.place, Stored::Place::none);
  disk.expect_nothing_is_taken();
  disk.overflow.free(stored);  // nothing
}

TEST(Overflow, a_query_has_a_limit_of_its_own_which_the_error_names) {
  Disk disk(1 << 20, 10'000);
  OverflowUsage other;
  Stored a, b, c;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(8000, 1), 8000, a).ok());
  EXPECT_TRUE(disk.overflow.is_above_query_limit(disk.usage, 8000));
  test::expect_error(disk.overflow.store(disk.usage, filled(8000, 1), 8000, b),
                     Code::overflow_exhausted, {"overflow.query_limit_bytes = 10000"});
  EXPECT_EQ(disk.usage.bytes.load(), in_memory(8000));
  EXPECT_FALSE(disk.overflow.is_above_query_limit(other, 8000));
  EXPECT_TRUE(disk.overflow.store(other, filled(8000, 1), 8000, c).ok()) << "others have theirs";
  disk.overflow.free(a);
  EXPECT_TRUE(disk.overflow.store(disk.usage, filled(8000, 1), 8000, b).ok());
  disk.free({&b, &c});
}

TEST(Overflow, a_write_that_fails_gives_the_extent_back) {
  Disk disk(0);
  disk.file.broken = true;
  Stored stored;
  EXPECT_EQ(store(disk, filled(10, 1), stored).code(), Code::overflow_exhausted);
  disk.expect_nothing_is_taken();
}

TEST(Overflow, a_read_that_fails_is_an_error_and_can_be_repeated) {
  Disk disk(in_memory(1600));
  Stored first, stored;
  ASSERT_TRUE(store(disk, filled(1600, 1), first).ok());
  ASSERT_TRUE(store(disk, filled(10, 3), stored).ok());
  ASSERT_EQ(stored.place, Stored::Place::file);
  disk.overflow.free(first);
  disk.file.broken = true;
  EXPECT_EQ(disk.overflow.load(stored).code(), Code::overflow_exhausted);
  disk.file.broken = false;
  EXPECT_EQ(contents(disk.overflow, stored), filled(10, 3));
  disk.overflow.free(stored);
  disk.expect_nothing_is_taken();
}

TEST(Overflow, what_comes_back_from_the_file_is_in_memory_if_the_budget_has_room_else_mapped) {
  Disk disk(in_memory(1600));
  Stored first, a, b;
  ASSERT_TRUE(store(disk, filled(1600, 1), first).ok());
  ASSERT_TRUE(store(disk, filled(1200, 2), a).ok());
  ASSERT_TRUE(store(disk, filled(1200, 3), b).ok());
  EXPECT_EQ(contents(disk.overflow, a), filled(1200, 2));
  EXPECT_EQ(a.place, Stored::Place::mapped);
  EXPECT_LE(disk.overflow.memory_bytes(), disk.overflow.limits().most_memory_bytes());
  disk.overflow.free(first);
  EXPECT_EQ(contents(disk.overflow, b), filled(1200, 3));
  EXPECT_EQ(b.place, Stored::Place::memory);
  EXPECT_EQ(disk.file.used_bytes(), kSpillBlock) << "of a alone";
  EXPECT_EQ(disk.usage.bytes.load(), in_file(1) + in_memory(1200));
  disk.free({&a, &b});
  disk.expect_nothing_is_taken();
}

TEST(Overflow, memory_that_must_be_writable_is_mapped_beyond_the_budget) {
  Disk disk(100);
  Stored a;
  ASSERT_TRUE(disk.overflow.allocate(disk.usage, 200, a).ok());
  EXPECT_EQ(a.place, Stored::Place::mapped);
  std::fill_n(a.memory, 200, std::byte{5});
  EXPECT_EQ(contents(disk.overflow, a), filled(200, 5));
  disk.overflow.free(a);
  EXPECT_EQ(disk.file.unmapped, 1);
  EXPECT_EQ(disk.file.used_bytes(), 0u);

  disk.file.unmappable = true;
  EXPECT_EQ(disk.overflow.allocate(disk.usage, 200, a).code(), Code::overflow_exhausted);
  disk.expect_nothing_is_taken();  // the extent was given back
}

}  // namespace
}  // namespace faro::shuffle
