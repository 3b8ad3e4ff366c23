#include "lab/workload/row_loops.h"

#include "base/vectorised.h"

namespace faro::workload {
namespace {

template <uint32_t kRowBytes>
struct GenerateLoop {
  [[gnu::always_inline]] static inline void run(uint64_t first, size_t count,
                                                char* __restrict__ to) {
    for (size_t i = 0; i < count; ++i) RowCodec<kRowBytes>::write(to + i * kRowBytes, first + i);
  }
};

template <uint32_t kRowBytes>
struct TransformLoop {
  [[gnu::always_inline]] static inline uint64_t run(const char* __restrict__ from, size_t count,
                                                    char* __restrict__ to) {
    using Codec = RowCodec<kRowBytes>;
    uint64_t damage = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t n = Codec::read(from + i * kRowBytes, damage);
      Codec::write(to + i * kRowBytes, transform(n));
    }
    return damage;
  }
};

template <uint32_t kRowBytes>
struct SumLoop {
  [[gnu::always_inline]] static inline RowSum run(const char* rows, size_t count) {
    return sum_rows<kRowBytes>(rows, count);
  }
};

/// Rows to try loops on: two times 4 KiB.
template <uint32_t kRowBytes>
struct Sample {
  static constexpr size_t kRows = 4096 / kRowBytes;
  Sample() { GenerateLoop<kRowBytes>::run(0, kRows, from); }

  char from[kRows * kRowBytes];
  char to[kRows * kRowBytes];
};

}  // namespace

template <uint32_t kRowBytes>
void RowLoops<kRowBytes>::generate(uint64_t first, size_t count, void* to) noexcept {
  static const auto loop = [] {
    Sample<kRowBytes> sample;
    return base::fastest<GenerateLoop<kRowBytes>>(
        [&](auto each) { each(0, sample.kRows, sample.to); });
  }();
  loop(first, count, static_cast<char*>(to));
}

template <uint32_t kRowBytes>
void RowLoops<kRowBytes>::transform(const void* from, size_t count, void* to,
                                    uint64_t& damage) noexcept {
  static const auto loop = [] {
    Sample<kRowBytes> sample;
    return base::fastest<TransformLoop<kRowBytes>>(
        [&](auto each) { each(sample.from, sample.kRows, sample.to); });
  }();
  damage |= loop(static_cast<const char*>(from), count, static_cast<char*>(to));
}

template <uint32_t kRowBytes>
RowSum RowLoops<kRowBytes>::sum(const void* rows, size_t count) noexcept {
  static const auto loop = [] {
    const Sample<kRowBytes> sample;
    return base::fastest<SumLoop<kRowBytes>>([&](auto each) { each(sample.from, sample.kRows); });
  }();
  return loop(static_cast<const char*>(rows), count);
}

template struct RowLoops<8>;
template struct RowLoops<16>;
template struct RowLoops<24>;
template struct RowLoops<32>;
template struct RowLoops<64>;
template struct RowLoops<100>;
template struct RowLoops<128>;

}  // namespace faro::workload
