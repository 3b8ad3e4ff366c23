// What readers of both kinds of counter files have in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "counters/records.h"

namespace faro::counters {

/// A piece of memory in which records lie.
struct alignas(64) Line {
  std::byte bytes[64];
};
using Lines = std::vector<Line>;

/// A text of a record, which ends with 0.
template <size_t N>
std::string text_of(const std::array<char, N>& chars) {
  return base::printable(std::string(chars.data(), strnlen(chars.data(), N)));
}

// Values and records are the same list, of numbers and of atomics.
template <typename Values, typename Record>
Values values_of(const Record& record) {
  Values values;
  auto* const to = reinterpret_cast<uint64_t*>(&values);
  const auto* const from = reinterpret_cast<const Counter*>(&record);
  for (size_t i = 0; i < sizeof(Values) / sizeof(uint64_t); ++i)
    to[i] = from[i].load(std::memory_order_relaxed);
  return values;
}

/// Adds each value of a record.
template <typename Values>
void add_values(const Values& from, Values& sum) {
  auto* const to = reinterpret_cast<uint64_t*>(&sum);
  const auto* const each = reinterpret_cast<const uint64_t*>(&from);
  for (size_t i = 0; i < sizeof(Values) / sizeof(uint64_t); ++i) to[i] += each[i];
}

/// Whether a process is stopped, as far as this one sees it. Blocks: for the file of the kernel.
bool is_stopped(uint32_t pid);

/// Reads `to.size()` bytes of a file; false if it does not have them.
bool copy_file(int fd, std::span<std::byte> to, uint64_t offset);
/// Reads `zeros.size()` bytes of a file with holes, which leave `zeros` as they are: what takes no
/// room in the file takes none here. False if the file has fewer.
bool copy_sparse_file(int fd, std::span<std::byte> zeros, uint64_t offset);

}  // namespace faro::counters
