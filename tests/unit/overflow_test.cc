// Overflow: memory up to a budget, then a file, then an error that says what is full.
#include "shuffle/overflow.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
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
  Status write(const Extent& extent, std::span<const std::byte> bytes) override {
    if (broken) return Status(Code::overflow_exhausted, "cannot write: Input/output error");
    contents_.at(extent.offset).assign(bytes.begin(), bytes.end());
    return Status::Ok();
  }
  Status read(const Extent& extent, std::span<std::byte> bytes) override {
    if (broken) return Status(Code::overflow_exhausted, "cannot read: Input/output error");
    const auto& from = contents_.at(extent.offset);
    std::copy(from.begin(), from.end(), bytes.begin());
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
  explicit Disk(uint64_t memory_bytes)
      : made(std::make_unique<ScriptedFile>()),
        file(*made),
        overflow(memory_bytes, std::move(made)) {}
  std::unique_ptr<ScriptedFile> made;
  ScriptedFile& file;
  Overflow overflow;
  OverflowUsage usage;
};

std::vector<std::byte> filled(size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

std::vector<std::byte> contents(Overflow& overflow, Stored& stored) {
  EXPECT_TRUE(overflow.load(stored).ok());
  return {stored.memory, stored.memory + stored.bytes};
}

TEST(Overflow, memory_first_and_the_file_beyond_the_budget) {
  Disk disk(1000);
  Stored a, b;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(600, 1), a).ok());
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(600, 2), b).ok());
  EXPECT_EQ(a.place, Stored::Place::memory);
  EXPECT_EQ(b.place, Stored::Place::file);
  EXPECT_EQ(disk.overflow.memory_bytes(), 600u);
  EXPECT_EQ(disk.usage.bytes.load(), 1200u);
  EXPECT_EQ(contents(disk.overflow, a), filled(600, 1));
  EXPECT_EQ(contents(disk.overflow, b), filled(600, 2));
  disk.overflow.free(a);
  disk.overflow.free(b);
  EXPECT_EQ(disk.overflow.memory_bytes(), 0u);
  EXPECT_EQ(disk.overflow.memory_peak_bytes(), 600u);
  EXPECT_EQ(disk.file.used_bytes(), 0u);
  EXPECT_EQ(disk.usage.bytes.load(), 0u);
}

TEST(Overflow, exactly_the_budget_fits) {
  Disk disk(1000);
  Stored a, b;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(1000, 1), a).ok());
  EXPECT_EQ(a.place, Stored::Place::memory);
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(1, 1), b).ok());
  EXPECT_EQ(b.place, Stored::Place::file);
  disk.overflow.free(a);
  disk.overflow.free(b);
}

TEST(Overflow, a_full_disk_is_an_error_that_names_both_limits_and_changes_nothing) {
  Disk disk(100);
  disk.file.full = true;
  Stored stored;
  const Status status = disk.overflow.store(disk.usage, filled(101, 1), stored);
  EXPECT_EQ(status.code(), Code::overflow_exhausted);
  EXPECT_NE(status.message().find("No space left on device"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("overflow.memory_bytes = 100"), std::string::npos)
      << status.message();
  EXPECT_EQ(stored.place, Stored::Place::none);
  EXPECT_EQ(disk.usage.bytes.load(), 0u);
  disk.overflow.free(stored);  // nothing
}

TEST(Overflow, a_write_that_fails_gives_the_extent_back) {
  Disk disk(0);
  disk.file.broken = true;
  Stored stored;
  EXPECT_EQ(disk.overflow.store(disk.usage, filled(10, 1), stored).code(),
            Code::overflow_exhausted);
  EXPECT_EQ(disk.file.used_bytes(), 0u);
  EXPECT_EQ(disk.usage.bytes.load(), 0u);
}

TEST(Overflow, a_read_that_fails_is_an_error_and_can_be_repeated) {
  Disk disk(0);
  Stored stored;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(10, 3), stored).ok());
  disk.file.broken = true;
  EXPECT_EQ(disk.overflow.load(stored).code(), Code::overflow_exhausted);
  disk.file.broken = false;
  EXPECT_EQ(contents(disk.overflow, stored), filled(10, 3));
  disk.overflow.free(stored);
}

TEST(Overflow, memory_that_must_be_writable_is_mapped_beyond_the_budget) {
  Disk disk(100);
  Stored a, b;
  ASSERT_TRUE(disk.overflow.allocate(disk.usage, 200, true, a).ok());
  EXPECT_EQ(a.place, Stored::Place::mapped);
  std::fill_n(a.memory, 200, std::byte{5});
  EXPECT_EQ(contents(disk.overflow, a), filled(200, 5));
  EXPECT_EQ(disk.overflow.allocate(disk.usage, 200, false, b).code(), Code::overflow_exhausted);
  disk.overflow.free(a);
  EXPECT_EQ(disk.file.unmapped, 1);
  EXPECT_EQ(disk.file.used_bytes(), 0u);

  disk.file.unmappable = true;
  EXPECT_EQ(disk.overflow.allocate(disk.usage, 200, true, a).code(), Code::overflow_exhausted);
  EXPECT_EQ(disk.file.used_bytes(), 0u) << "the extent was not given back";
  EXPECT_EQ(disk.usage.bytes.load(), 0u);
}

TEST(Overflow, what_is_in_memory_can_move_to_the_file) {
  Disk disk(100);
  Stored stored;
  ASSERT_TRUE(disk.overflow.store(disk.usage, filled(80, 9), stored).ok());
  disk.file.full = true;
  EXPECT_FALSE(disk.overflow.spill(stored).ok());
  EXPECT_EQ(stored.place, Stored::Place::memory) << "unchanged";
  disk.file.full = false;
  ASSERT_TRUE(disk.overflow.spill(stored).ok());
  EXPECT_EQ(stored.place, Stored::Place::file);
  EXPECT_EQ(disk.overflow.memory_bytes(), 0u);
  EXPECT_EQ(disk.usage.bytes.load(), 80u);
  EXPECT_EQ(contents(disk.overflow, stored), filled(80, 9));
  disk.overflow.free(stored);
}

}  // namespace
}  // namespace faro::shuffle
