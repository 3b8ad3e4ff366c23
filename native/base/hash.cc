#include "faro/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace faro {

uint64_t hash_bytes(const void* data, size_t bytes) noexcept { return XXH3_64bits(data, bytes); }

}  // namespace faro
