// Hash functions for partitioning. They give equal results on every platform, with every compiler
// and in every language, so that nodes written in C++ and Java agree where a key belongs.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace faro {

/// A 64-bit finalizer (the mixing step published as "variant 13" of MurmurHash3's finalizer): every
/// input bit reaches every output bit. The default: safe for any keys, also sequential or strided.
/// About 1 ns a row.
struct FinalizerHash {
  static constexpr const char* kName = "finalizer";
  constexpr uint64_t operator()(uint64_t key) const noexcept {
    key ^= key >> 30;
    key *= 0xbf58476d1ce4e5b9ULL;
    key ^= key >> 27;
    key *= 0x94d049bb133111ebULL;
    key ^= key >> 31;
    return key;
  }
};

/// Fibonacci hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4): one multiplication by
/// 2^64 divided by the golden ratio. Cheap; good for dense integer keys because only its high bits
/// are used by `partition`. Keys that differ only in a few high bits collide: use FinalizerHash.
struct MultiplicativeHash {
  static constexpr const char* kName = "multiplicative";
  constexpr uint64_t operator()(uint64_t key) const noexcept { return key * 0x9e3779b97f4a7c15ULL; }
};

/// The hashes above, for what is chosen at run time.
enum class KeyHash : uint8_t { finalizer, multiplicative };

/// Where the key lies in rows of a fixed width. `bytes` 8 and 4: an integer without a sign, as the
/// machine stores it (little-endian); other widths: bytes, to be hashed by hash_bytes.
struct RowKey {
  uint32_t offset = 0;
  uint32_t bytes = 8;
};

/// Maps a 64-bit hash to 0 … receiver_count-1 by its high 32 bits (multiply-shift; Lemire, "Fast
/// random integer generation in an interval", 2019). No division; every platform agrees.
/// receiver_count must be positive.
constexpr uint32_t partition(uint64_t hash, uint32_t receiver_count) noexcept {
  return static_cast<uint32_t>(((hash >> 32) * receiver_count) >> 32);
}

/// receivers[i] = partition(hash(keys[i]), receiver_count) for all keys, one by one, with AVX2 or
/// with AVX-512, whichever is fastest on the processor at hand. The results do not depend on it.
/// `receivers` has room for keys.size(). Threads: any. Blocks: never.
void partition_all(FinalizerHash hash, std::span<const uint64_t> keys, uint32_t receiver_count,
                   uint32_t* receivers) noexcept;
void partition_all(MultiplicativeHash hash, std::span<const uint64_t> keys, uint32_t receiver_count,
                   uint32_t* receivers) noexcept;

/// receivers[i] = partition(hash(keys[i]), receiver_count) for all keys, one by one, with a hash
/// function of the user's own. `receivers` has room for keys.size(). Threads: any. Blocks: never.
template <typename Hash>
void partition_all(Hash hash, std::span<const uint64_t> keys, uint32_t receiver_count,
                   uint32_t* receivers) noexcept {
  for (size_t i = 0; i < keys.size(); ++i) receivers[i] = partition(hash(keys[i]), receiver_count);
}

/// Hash of a byte string (XXH3, 64 bits, seed 0), for keys that are not integers.
/// The result is already well mixed: hand it to `partition` as it is.
uint64_t hash_bytes(const void* data, size_t bytes) noexcept;

}  // namespace faro

#pragma GCC visibility pop
