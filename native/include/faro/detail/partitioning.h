// Into how many local partitions operators put rows, and how large what is worked on at a time may
// be. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace faro::detail {

/// Rows that arrive go to 2^kBits partitions, so that their open ends stay in the first-level
/// cache. A partition that is too large to be worked on at once is split into 2^kSplitBits, and so
/// on.
struct Partitioning {
  static constexpr uint32_t kBits = 6;
  static constexpr uint32_t kSplitBits = 4;
  /// A table up to this size stays in the second-level cache, more or less.
  static constexpr uint64_t kCacheBytes = uint64_t{2} << 20;
  /// Nothing is split more often: rows with 2^70 hashes would come first. What is left then has
  /// keys whose hashes are equal.
  static constexpr size_t kMostLevels = 16;
};

}  // namespace faro::detail

#pragma GCC visibility pop
