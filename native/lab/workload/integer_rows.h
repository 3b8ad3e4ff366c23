// The rows of benchmarks, and what has to come of them: a row follows from one integer, n, which is its key; receivers add up what
// comes, in any order, and the sums of all of them are compared with those of the integers. Beside RowGenerator and RowChecker, which
// know the order of rows and what is wrong with one, but take about a hundred times as long per row.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

#include "faro/hash.h"

namespace faro::workload {

// Rows are laid out by memcpy of native integers.
static_assert(std::endian::native == std::endian::little);

/// The integers [begin, end).
struct IntegerRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  constexpr uint64_t size() const noexcept { return end - begin; }
  constexpr bool empty() const noexcept { return begin == end; }
  /// Part `index` of `count` parts as equal as can be. They are disjoint and cover the range.
  constexpr IntegerRange part(uint64_t index, uint64_t count) const noexcept {
    return {begin + size() * index / count, begin + size() * (index + 1) / count};
  }
};

/// What a row becomes in the next stage: most rows go to another worker than before. Injective, so that a
/// lost and a doubled row cannot hide each other.
constexpr uint64_t transform(uint64_t n) noexcept { return n * 3 / 2; }

/// One row's part of the checksum. Not linear in n: two wrong rows do not cancel out.
constexpr uint64_t weight_of(uint64_t n) noexcept {
  n *= 0x9e3779b97f4a7c15ULL;
  return n ^ (n >> 32);
}

/// The receiver of a key.
template <class Hash>
constexpr uint32_t destination_of(uint64_t key, uint32_t receiver_count) noexcept {
  return partition(Hash{}(key), receiver_count);
}

/// A row of kRowBytes bytes:
///
///   0        8        16            8*i            kRowBytes
///   +--------+--------+-- … --+--------+-- … --+-----+
///   |   n    |  n+1   |       |  n+i   |       | tail|     tail: the low bytes of the next word
///   +--------+--------+-- … --+--------+-- … --+-----+
///
/// Everything behind n follows from n, so that the receiver can tell a torn row. Rows need no
/// alignment.
template <uint32_t kRowBytes>
struct RowCodec {
  static_assert(kRowBytes >= 8);
  static constexpr uint32_t kBytes = kRowBytes;
  static constexpr uint32_t kWords = kRowBytes / 8;
  static constexpr uint32_t kTailBytes = kRowBytes % 8;

  /// Writes the row of n to `to` (kRowBytes bytes).
  static void write(void* to, uint64_t n) noexcept {
    char* at = static_cast<char*>(to);
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint64_t word = n + i;
      std::memcpy(at + 8 * i, &word, 8);
    }
    if constexpr (kTailBytes > 0) {
      const uint64_t word = n + kWords;
      std::memcpy(at + 8 * kWords, &word, kTailBytes);
    }
  }

  /// Reads n back. Bits of the rest that differ from what write() left there are or-ed into
  /// `damage`, which stays 0 while all rows are whole.
  static uint64_t read(const void* from, uint64_t& damage) noexcept {
    const char* at = static_cast<const char*>(from);
    const uint64_t n = key(from);
    for (uint32_t i = 1; i < kWords; ++i) {
      uint64_t word;
      std::memcpy(&word, at + 8 * i, 8);
      damage |= word ^ (n + i);
    }
    if constexpr (kTailBytes > 0) {
      constexpr uint64_t kTailMask = (uint64_t{1} << (8 * kTailBytes)) - 1;
      uint64_t word = 0;
      std::memcpy(&word, at + 8 * kWords, kTailBytes);
      damage |= word ^ ((n + kWords) & kTailMask);
    }
    return n;
  }

  static uint64_t key(const void* row) noexcept {
    uint64_t n;
    std::memcpy(&n, row, sizeof n);
    return n;
  }
};

/// A row of RowCodec as a type to send.
template <uint32_t kRowBytes>
struct IntegerRow {
  char bytes[kRowBytes];

  static constexpr auto key_of = [](const IntegerRow& row) noexcept {
    return RowCodec<kRowBytes>::key(row.bytes);
  };
};

/// Rows of any size from 16 bytes whose first and last 8 bytes are n, for what moves large rows without a look at each byte.
struct EndsCodec {
  static void write(std::span<std::byte> to, uint64_t n) noexcept {
    std::memcpy(to.data(), &n, sizeof n);
    std::memcpy(to.data() + to.size() - sizeof n, &n, sizeof n);
  }
  /// Reads a row as RowCodec::read does.
  static uint64_t read(std::span<const std::byte> from, uint64_t& damage) noexcept {
    const uint64_t n = RowCodec<8>::key(from.data());
    damage |= n ^ RowCodec<8>::key(from.data() + from.size() - sizeof n);
    return n;
  }
};

/// What some rows add up to. Two of the same rows are equal, in whichever order they came.
struct Totals {
  uint64_t count = 0;
  uint64_t checksum = 0;

  bool operator==(const Totals&) const = default;
  Totals& operator+=(const Totals& other) noexcept {
    count += other.count;
    checksum += other.checksum;
    return *this;
  }
};

/// What one receiver has seen. Threads: one; add the totals of all.
struct RowSum {
  uint64_t count = 0;
  uint64_t sum = 0;     // of weight_of(n)
  uint64_t damage = 0;  // that a codec reported

  constexpr void add(uint64_t n) noexcept {
    ++count;
    sum += weight_of(n);
  }
  constexpr RowSum& operator+=(const RowSum& other) noexcept {
    count += other.count;
    sum += other.sum;
    damage |= other.damage;
    return *this;
  }
  /// Differ from the expected ones if any row was damaged, lost, doubled or altered.
  constexpr Totals totals() const noexcept { return {count, sum + damage}; }
};

/// Reads `count` rows of RowCodec that lie one behind the other. Compiled for where it is called.
template <uint32_t kRowBytes>
[[gnu::always_inline]] inline RowSum sum_rows(const void* rows, size_t count) noexcept {
  const char* const at = static_cast<const char*>(rows);
  RowSum sum{count};
  for (size_t i = 0; i < count; ++i)
    sum.sum += weight_of(RowCodec<kRowBytes>::read(at + i * kRowBytes, sum.damage));
  return sum;
}

/// What value(n) of the integers 0 … count-1 come to: a plain loop without hash, destination or
/// shuffling, about 1 ns an integer.
template <class Value = std::identity>
constexpr Totals totals_of(uint64_t count, Value value = {}) noexcept {
  RowSum sum;
  for (uint64_t n = 0; n < count; ++n) sum.add(value(n));
  return sum.totals();
}

}  // namespace faro::workload
