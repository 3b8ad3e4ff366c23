// How operators use the hash of a key. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "faro/hash.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// The hash of a key: What::hash(key) if there is one, FinalizerHash of an integer, hash_bytes of
/// anything else that is equal where its bytes are. Its high 32 bits choose the receiver
/// (faro::partition), so that an engine may use a hash of its own for rows that come to one worker.
template <typename What, typename Key>
uint64_t hash_of_key(const What& what, const Key& key) noexcept {
  if constexpr (requires { what.hash(key); }) {
    return what.hash(key);
  } else if constexpr (std::is_integral_v<Key> || std::is_enum_v<Key>) {
    return FinalizerHash{}(static_cast<uint64_t>(key));
  } else {
    static_assert(std::has_unique_object_representations_v<Key>,
                  "keys that can be equal with other bytes need a function `hash`");
    return hash_bytes(&key, sizeof key);
  }
}

/// Mixes a hash once more, with a number that is drawn for each operator: every bit of both reaches
/// every bit of the result. Local partitions are chosen by its highest bits, places in tables by
/// its lowest. So neither needs the low bits of an engine's hash, and whoever chooses keys that
/// collide in one of them does not know the number. One multiplication, both halves of which are
/// folded (as in wyhash).
inline uint64_t mix(uint64_t hash, uint64_t number) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(hash ^ number) * 0x9e3779b97f4a7c15ULL;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// The number with which keys are mixed where a partition is split once more: what was equal in the
/// level above is spread anew.
constexpr uint64_t number_of_level(uint64_t number, uint32_t level) noexcept {
  return level == 0 ? number : FinalizerHash{}(number + level);
}

/// The local partition of a mixed hash, of 2^bits.
constexpr uint32_t local_partition(uint64_t mixed, uint32_t bits) noexcept {
  return static_cast<uint32_t>(mixed >> (64 - bits));
}

}  // namespace faro::detail

#pragma GCC visibility pop
