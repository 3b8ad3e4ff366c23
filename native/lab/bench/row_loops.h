// What the stages of the two-stage job do with a whole batch of rows: the loops of its generator, of
// n := n*3/2 and of its sink, compiled for the processor at hand (base/vectorised.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace faro::bench {

/// Rows lie one behind the other, kRowBytes (of kRowWidths) each, as RowCodec writes them; they need
/// no alignment. `damage`: as RowCodec::read.
/// Threads: any. Blocks: never.
template <uint32_t kRowBytes>
struct RowLoops {
  /// Writes the rows of first, first + 1, … to `to`.
  static void generate(uint64_t first, size_t count, void* to) noexcept;
  /// Writes the rows of transform(n) for all rows n at `from` to `to`. The two do not overlap.
  static void transform(const void* from, size_t count, void* to, uint64_t& damage) noexcept;
  /// The sum of mix(n) over all rows.
  static uint64_t sum_of_mix(const void* rows, size_t count, uint64_t& damage) noexcept;
};

extern template struct RowLoops<8>;
extern template struct RowLoops<16>;
extern template struct RowLoops<24>;
extern template struct RowLoops<32>;
extern template struct RowLoops<64>;
extern template struct RowLoops<100>;
extern template struct RowLoops<128>;

}  // namespace faro::bench
