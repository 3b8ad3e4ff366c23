// Addresses that are kept when their memory has been given back.
#include "base/kept_addresses.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace faro::base {
namespace {

constexpr size_t kPage = 4096;

std::span<std::byte> mapped(size_t bytes, void* at = nullptr) {
  void* const memory =
      mmap(at, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | (at ? MAP_FIXED : 0), -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  return {static_cast<std::byte*>(memory), bytes};
}

// Whether nothing is mapped there.
bool is_free(const std::byte* page) {
  unsigned char resident = 0;
  return mincore(const_cast<std::byte*>(page), kPage, &resident) != 0 && errno == ENOMEM;
}

// Whether the kernel finds memory there.
bool has_memory(const std::byte* at) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const bool has = write(ends[1], at, 1) == 1;
  EXPECT_TRUE(has || errno == EFAULT);
  close(ends[0]);
  close(ends[1]);
  return has;
}

size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

TEST(KeptAddresses, are_free_with_their_memory_if_nobody_keeps_them) {
  const auto memory = mapped(4 * kPage);
  keep_addresses(memory).reset();
  unmap(memory.data(), memory.size());
  EXPECT_TRUE(is_free(memory.data()));
}

TEST(KeptAddresses, have_no_memory_and_go_with_the_last_who_keeps_them) {
  const auto memory = mapped(4 * kPage);
  auto one = keep_addresses(memory.subspan(kPage, kPage));  // a part of a mapping
  auto other = keep_addresses(memory.subspan(2 * kPage + 64, 128));
  EXPECT_TRUE(has_memory(memory.data()));
  unmap(memory.data(), memory.size());
  for (size_t page = 0; page < 4; ++page) {
    EXPECT_FALSE(is_free(memory.data() + page * kPage));
    EXPECT_FALSE(has_memory(memory.data() + page * kPage));
  }
  one.reset();
  EXPECT_FALSE(is_free(memory.data()));
  auto copy = other;
  other.reset();
  EXPECT_FALSE(is_free(memory.data()));
  copy.reset();
  EXPECT_TRUE(is_free(memory.data()));
}

TEST(KeptAddresses, of_another_mapping_are_left_alone) {
  const auto whole = mapped(3 * kPage);
  const auto kept = keep_addresses(whole.first(kPage));
  const auto also = keep_addresses(whole.last(kPage));
  unmap(whole.data() + kPage, kPage);
  EXPECT_TRUE(is_free(whole.data() + kPage));
  EXPECT_TRUE(has_memory(whole.data()) && has_memory(whole.data() + 2 * kPage));
  unmap(whole.data(), kPage);
  unmap(whole.data() + 2 * kPage, kPage);
}

TEST(KeptAddressesDeathTest, are_a_bus_error_to_who_uses_them) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const auto memory = mapped(kPage);
        const auto kept = keep_addresses(memory);
        unmap(memory.data(), memory.size());
        // Not what a sanitizer would do.
        std::signal(SIGBUS, [](int) { _exit(7); });
        *reinterpret_cast<volatile std::byte*>(memory.data()) = std::byte{1};
      },
      testing::ExitedWithCode(7), "");
}

// vm.max_map_count is 65530 by default.
TEST(KeptAddresses, of_neighbours_are_one_entry_for_the_kernel) {
  constexpr size_t kCount = 200;
  const auto whole = mapped(kCount * kPage);
  std::vector<std::shared_ptr<const void>> kept;
  for (size_t i = 0; i < kCount; ++i)
    kept.push_back(keep_addresses(whole.subspan(i * kPage, kPage)));
  const size_t before = mappings();
  for (size_t i = 0; i < kCount; ++i) unmap(whole.data() + i * kPage, kPage);
  EXPECT_LE(mappings(), before + kCount / 10);  // an allocator may have made some of its own
  kept.clear();
  EXPECT_TRUE(is_free(whole.data()));
}

}  // namespace
}  // namespace faro::base
