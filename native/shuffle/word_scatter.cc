// Rows of 8 bytes to their receivers' frames, eight at a time.
#include <algorithm>
#include <cstdint>
#include <iterator>

#include "faro/shuffle.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FARO_HAS_WORD_SCATTER 1
#endif

namespace faro::detail {

#ifdef FARO_HAS_WORD_SCATTER
namespace {

constexpr size_t kLanes = 8;  // of a vector
constexpr size_t kVectorBytes = kLanes * sizeof(uint64_t);

// For each receiver, the rows of a vector that are for it are moved together and stored behind its last
// row, whole vectors each: what is stored too much lies within the frame and is overwritten by what
// comes next. One store per receiver and eight rows, where row by row it were two stores per row.
template <uint32_t kReceivers>
[[gnu::target("avx512f,avx512dq,avx512vl,popcnt")]] size_t scatter(const void* rows,
                                                                   const uint32_t* receivers,
                                                                   size_t count,
                                                                   OutboxCursor* cursors) noexcept {
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

bool is_supported() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

}  // namespace
#endif

WordScatter word_scatter(uint32_t receiver_count) noexcept {
#ifdef FARO_HAS_WORD_SCATTER
  // With more receivers the rows per store are so few that row by row is as fast.
  static constexpr WordScatter kByReceivers[] = {nullptr,    nullptr,    scatter<2>, scatter<3>,
                                                 scatter<4>, scatter<5>, scatter<6>};
  static const bool supported = is_supported();
  if (supported && receiver_count < std::size(kByReceivers)) return kByReceivers[receiver_count];
#else
  (void)receiver_count;
#endif
  return nullptr;
}

}  // namespace faro::detail
