#include "faro/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/vectorised.h"

namespace faro {
namespace {

// With AVX-512 0.4 ns a key instead of 0.8 with AVX2 (finalizer, Zen 4 at 2.6 GHz).
template <typename Hash>
struct PartitionLoop {
  [[gnu::always_inline]] static inline void run(const uint64_t* keys, size_t count,
                                                uint32_t receiver_count, uint32_t* receivers) {
    for (size_t i = 0; i < count; ++i) receivers[i] = partition(Hash{}(keys[i]), receiver_count);
  }
};

}  // namespace

void partition_all(FinalizerHash, std::span<const uint64_t> keys, uint32_t receiver_count,
                   uint32_t* receivers) noexcept {
  static const auto loop = base::vectorised<PartitionLoop<FinalizerHash>>();
  loop(keys.data(), keys.size(), receiver_count, receivers);
}
void partition_all(MultiplicativeHash, std::span<const uint64_t> keys, uint32_t receiver_count,
                   uint32_t* receivers) noexcept {
  static const auto loop = base::vectorised<PartitionLoop<MultiplicativeHash>>();
  loop(keys.data(), keys.size(), receiver_count, receivers);
}

uint64_t hash_bytes(const void* data, size_t bytes) noexcept { return XXH3_64bits(data, bytes); }

}  // namespace faro
