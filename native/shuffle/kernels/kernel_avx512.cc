#include <algorithm>
#include <cstdint>

#include "base/processor.h"
#include "shuffle/kernels/kernels.h"

#ifdef FARO_HAS_X86_VECTORS
#include <immintrin.h>
#endif

namespace faro::shuffle {

#ifdef FARO_HAS_X86_VECTORS
namespace {

template <class Hash>
[[gnu::target(FARO_TARGET_AVX512)]] void partition_block(const uint64_t* keys, size_t count,
                                                         uint32_t receiver_count,
                                                         uint32_t* receivers) noexcept {
  for (size_t i = 0; i < count; ++i) receivers[i] = partition(Hash{}(keys[i]), receiver_count);
}

// --- rows of 8 bytes to their receivers' frames, eight at a time

constexpr size_t kLanes = 8;  // of a vector
constexpr size_t kVectorBytes = kLanes * sizeof(uint64_t);

// For each receiver, the rows of a vector that are for it are moved together and stored behind its last
// row, whole vectors each: what is stored too much lies within the frame and is overwritten by what
// comes next. One store per receiver and eight rows, instead of two stores per row.
template <uint32_t kReceivers>
[[gnu::target(FARO_TARGET_AVX512)]] size_t scatter(const void* rows, const uint32_t* receivers,
                                                   size_t count,
                                                   detail::FrameCursor* cursors) noexcept {
  const auto* const words = static_cast<const uint64_t*>(rows);
  std::byte* at[kReceivers];
  for (uint32_t r = 0; r < kReceivers; ++r) at[r] = cursors[r].at;
  size_t done = 0;
  for (;;) {
    // Vectors that fit whichever receivers their rows are for.
    size_t vectors = (count - done) / kLanes;
    for (uint32_t r = 0; r < kReceivers; ++r) {
      vectors = std::min(vectors, static_cast<size_t>(cursors[r].end - at[r]) / kVectorBytes);
    }
    if (vectors == 0) break;
    for (const size_t end = done + vectors * kLanes; done < end; done += kLanes) {
      const __m512i eight = _mm512_loadu_si512(words + done);
      const __m256i to = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(receivers + done));
#pragma GCC unroll 8
      for (uint32_t r = 0; r < kReceivers; ++r) {
        const __mmask8 mine = _mm256_cmpeq_epi32_mask(to, _mm256_set1_epi32(static_cast<int>(r)));
        _mm512_storeu_si512(at[r], _mm512_maskz_compress_epi64(mine, eight));
        at[r] += sizeof(uint64_t) * static_cast<size_t>(_mm_popcnt_u32(mine));
      }
    }
  }
  for (uint32_t r = 0; r < kReceivers; ++r) cursors[r].at = at[r];
  return done;
}

// With more receivers the rows per store are so few that row by row is as fast.
template <class Hash>
constexpr detail::BlockKernel kKernel = {
    partition_block<Hash>,
    {nullptr, nullptr, scatter<2>, scatter<3>, scatter<4>, scatter<5>, scatter<6>}};

}  // namespace

const detail::BlockKernel* avx512_kernel(KeyHash hash) noexcept {
  return hash == KeyHash::finalizer ? &kKernel<FinalizerHash> : &kKernel<MultiplicativeHash>;
}
#else
const detail::BlockKernel* avx512_kernel(KeyHash) noexcept { return nullptr; }
#endif

}  // namespace faro::shuffle
