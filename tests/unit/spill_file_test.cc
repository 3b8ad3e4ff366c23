// The spill file: extents, their reuse, and what happens when there is no more room.
#include "shuffle/overflow/spill_file.h"
#include "support/expect.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace faro::shuffle {
namespace {

constexpr uint64_t kBlock = kSpillBlock;

std::string folder() { return testing::TempDir(); }

std::vector<std::byte> filled(size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

TEST(SpillFile, gives_back_what_was_written) {
  auto file = make_spill_file(folder(), 1 << 20);
  const Extent a = test::value_of(file->allocate(10'000));
  const Extent b = test::value_of(file->allocate(1));
  ASSERT_TRUE(file->write(a, 0, filled(10'000, 1)).ok());
  ASSERT_TRUE(file->write(b, 0, filled(1, 2)).ok());
  std::vector<std::byte> read(10'000);
  ASSERT_TRUE(file->read(a, read).ok());
  EXPECT_EQ(read, filled(10'000, 1));
  read.resize(1);
  ASSERT_TRUE(file->read(b, read).ok());
  EXPECT_EQ(read, filled(1, 2));
}

TEST(SpillFile, is_written_in_parts_one_behind_the_other) {
  auto file = make_spill_file(folder(), 1 << 20);
  const Extent extent = *file->allocate(300);
  for (int part = 0; part < 3; ++part)
    ASSERT_TRUE(file->write(extent, static_cast<uint64_t>(part) * 100, filled(100, part)).ok());
  std::vector<std::byte> read(300);
  ASSERT_TRUE(file->read(extent, read).ok());
  for (size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], static_cast<std::byte>(i / 100));
}

TEST(SpillFile, has_no_name) {
  const test::TemporaryFolder own;
  auto file = make_spill_file(own.path(), 1 << 20);
  ASSERT_TRUE(file->allocate(1).ok());
  EXPECT_TRUE(own.empty());
}

TEST(SpillFile, is_not_made_before_it_is_needed) {
  auto file = make_spill_file("/no such folder", 1 << 20);
  EXPECT_EQ(file->used_bytes(), 0u);
  test::expect_error(file->allocate(1).status(), Code::overflow_exhausted, {"/no such folder"});
}

TEST(SpillFile, a_limit_is_an_error_that_names_it) {
  auto file = make_spill_file(folder(), 2 * kBlock);
  auto whole = test::value_of(file->allocate(2 * kBlock));
  const Status status = file->allocate(1).status();
  test::expect_error(status, Code::overflow_exhausted, {"overflow.file_bytes = 8192"});
  file->free(whole);
  EXPECT_TRUE(file->allocate(2 * kBlock).ok()) << "what was given back can be used again";
  EXPECT_EQ(file->allocate(UINT64_MAX - kBlock).status().code(), Code::overflow_exhausted);
}

TEST(SpillFile, a_limit_of_zero_allows_nothing) {
  auto file = make_spill_file(folder(), 0);
  EXPECT_EQ(file->allocate(1).status().code(), Code::overflow_exhausted);
}

TEST(SpillFile, neighbours_that_are_free_become_one) {
  auto file = make_spill_file(folder(), 4 * kBlock);
  std::vector<Extent> extents;
  for (int i = 0; i < 4; ++i) extents.push_back(*file->allocate(kBlock));
  // In an order that joins with the one before, the one behind, and both.
  file->free(extents[0]);
  file->free(extents[2]);
  EXPECT_FALSE(file->allocate(2 * kBlock).ok()) << "two holes are not one";
  file->free(extents[1]);
  auto three = test::value_of(file->allocate(3 * kBlock));
  EXPECT_EQ(three.offset, 0u);
  file->free(three);
  file->free(extents[3]);
  EXPECT_EQ(file->used_bytes(), 0u);
  EXPECT_EQ(file->peak_bytes(), 4 * kBlock);
  EXPECT_TRUE(file->allocate(4 * kBlock).ok());
}

TEST(SpillFile, the_rest_of_a_hole_stays_usable) {
  auto file = make_spill_file(folder(), 4 * kBlock);
  const Extent hole = *file->allocate(3 * kBlock);
  const Extent end = *file->allocate(kBlock);
  file->free(hole);
  const Extent a = *file->allocate(kBlock);
  const Extent b = *file->allocate(2 * kBlock);
  EXPECT_EQ(a.offset, 0u);
  EXPECT_EQ(b.offset, kBlock);
  EXPECT_FALSE(file->allocate(1).ok());
  for (const Extent& extent : {a, b, end}) file->free(extent);
  EXPECT_EQ(file->used_bytes(), 0u);
}

TEST(SpillFile, a_mapped_extent_is_the_file) {
  auto file = make_spill_file(folder(), 1 << 20);
  const Extent before = *file->allocate(100);
  const Extent extent = *file->allocate(10'000);
  std::byte* const memory = file->map(extent);
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 7, 10'000);
  std::vector<std::byte> read(10'000);
  ASSERT_TRUE(file->read(extent, read).ok());
  EXPECT_EQ(read, filled(10'000, 7));
  file->unmap(extent, memory);
  file->free(extent);
  file->free(before);
}

TEST(SpillFile, extents_never_overlap_whatever_the_order) {
  std::mt19937_64 random(1);
  auto file = make_spill_file(folder(), 64 * kBlock);
  struct Held {
    Extent extent;
    int value;
  };
  std::vector<Held> held;
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    if (random() % 2 == 0) {
      const uint64_t bytes = 1 + random() % (6 * kBlock);
      Result<Extent> extent = file->allocate(bytes);
      if (!extent.ok()) {
        ++refused;
        continue;
      }
      EXPECT_LE(extent->offset + bytes, 64 * kBlock);
      held.push_back({*extent, round % 251});
      ASSERT_TRUE(file->write(*extent, 0, filled(bytes, round % 251)).ok());
    } else if (!held.empty()) {
      const size_t which = random() % held.size();
      const Held one = held[which];
      held[which] = held.back();
      held.pop_back();
      std::vector<std::byte> read(one.extent.bytes);
      ASSERT_TRUE(file->read(one.extent, read).ok());
      ASSERT_EQ(read, filled(one.extent.bytes, one.value)) << "round " << round;
      file->free(one.extent);
    }
  }
  EXPECT_GT(refused, 0) << "the limit was never reached";
  for (const Held& one : held) file->free(one.extent);
  EXPECT_EQ(file->used_bytes(), 0u);
}

// The number of mappings of the files in a folder, by this process.
uint64_t mappings_of(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  uint64_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(folder) != std::string::npos;
  return count;
}

// Also across the ends of windows, for 12 KiB do not divide them.
TEST(SpillFile, thousands_of_mapped_extents_are_few_mappings_of_the_process) {
  constexpr uint64_t kBytes = 3 * kBlock;
  constexpr uint32_t kExtents = 5'000;
  const test::TemporaryFolder own;
  auto file = make_spill_file(own.path(), kExtents * kBytes);
  std::vector<std::pair<Extent, std::byte*>> mapped;
  for (uint32_t i = 0; i < kExtents; ++i) {
    const auto extent = test::value_of(file->allocate(kBytes));
    mapped.emplace_back(extent, file->map(extent));
    ASSERT_NE(mapped.back().second, nullptr);
    std::memset(mapped.back().second, static_cast<int>(i % 251), kBytes);
  }
  EXPECT_GT(mappings_of(own.path()), 0u);
  EXPECT_LT(mappings_of(own.path()), 20u);
  std::vector<std::byte> read(kBytes);
  for (uint32_t i = 0; i < kExtents; ++i) {
    ASSERT_TRUE(file->read(mapped[i].first, read).ok());
    ASSERT_EQ(read, filled(kBytes, static_cast<int>(i % 251))) << "extent " << i;
  }
  for (const auto& [extent, memory] : mapped) {
    file->unmap(extent, memory);
    file->free(extent);
  }
  EXPECT_EQ(mappings_of(own.path()), 0u);
}

}  // namespace
}  // namespace faro::shuffle
