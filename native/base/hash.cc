#include "faro/hash.h"

#include <iterator>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/vectorised.h"

namespace faro {
namespace {

template <typename Hash>
struct PartitionLoop {
  [[gnu::always_inline]] static inline void run(const uint64_t* keys, size_t count,
                                                uint32_t receiver_count, uint32_t* receivers) {
    for (size_t i = 0; i < count; ++i) receivers[i] = partition(Hash{}(keys[i]), receiver_count);
  }
};

template <typename Hash>
auto fastest_partition_loop() noexcept {
  uint64_t keys[512];
  uint32_t receivers[std::size(keys)];
  for (size_t i = 0; i < std::size(keys); ++i) keys[i] = i;
  return base::fastest<PartitionLoop<Hash>>(
      [&](auto loop) { loop(keys, std::size(keys), 4, receivers); });
}

}  // namespace

void partition_all(FinalizerHash, std::span<const uint64_t> keys, uint32_t receiver_count,
                   uint32_t* receivers) noexcept {
  static const auto loop = fastest_partition_loop<FinalizerHash>();
  loop(keys.data(), keys.size(), receiver_count, receivers);
}
void partition_all(MultiplicativeHash, std::span<const uint64_t> keys, uint32_t receiver_count,
                   uint32_t* receivers) noexcept {
  static const auto loop = fastest_partition_loop<MultiplicativeHash>();
  loop(keys.data(), keys.size(), receiver_count, receivers);
}

uint64_t hash_bytes(const void* data, size_t bytes) noexcept { return XXH3_64bits(data, bytes); }

}  // namespace faro
