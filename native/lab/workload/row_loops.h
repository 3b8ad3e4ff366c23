// What a stage does with a whole batch of integer rows: make, transform and add them up, by loops compiled for the processor at hand
// (base/vectorised.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/workload/integer_rows.h"

namespace faro::workload {

/// The widths that loops are compiled for.
inline constexpr uint32_t kRowWidths[] = {8, 16, 24, 32, 64, 100, 128};

/// Rows lie one behind the other, kRowBytes (of kRowWidths) each, as RowCodec writes them; they need
/// no alignment. `damage`: as RowCodec::read.
/// Threads: any. Blocks: never.
template <uint32_t kRowBytes>
struct RowLoops {
  /// Writes the rows of first, first + 1, … to `to`.
  static void generate(uint64_t first, size_t count, void* to) noexcept;
  /// Writes the rows of transform(n) for all rows n at `from` to `to`. The two do not overlap.
  static void transform(const void* from, size_t count, void* to, uint64_t& damage) noexcept;
  static RowSum sum(const void* rows, size_t count) noexcept;
};

extern template struct RowLoops<8>;
extern template struct RowLoops<16>;
extern template struct RowLoops<24>;
extern template struct RowLoops<32>;
extern template struct RowLoops<64>;
extern template struct RowLoops<100>;
extern template struct RowLoops<128>;

}  // namespace faro::workload
