// Kernels: the ways in which send_all hashes rows and scatters them to their receivers' open frames.
//
//   scalar   one pass: hash a row, copy it (in faro/detail/scatter.h)
//   avx2     blocks of rows: hash four at a time, then copy row by row
//   avx512   the same, eight at a time; rows of 8 bytes to few receivers are also scattered eight at a time
//
// Which is fastest depends on the processor, the width of the rows and the number of receivers: without
// 64-bit multiplications in vectors (AVX2) hashing one by one is quicker on some, and what a second pass
// costs grows with the rows. So each is tried for some microseconds, once for each width and number of
// receivers. On aarch64 there is the scalar one alone: NEON multiplies no 64-bit integers, and has
// no store that would scatter.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "faro/shuffle.h"

namespace faro::shuffle {

enum class Kernel : uint8_t { scalar, avx2, avx512 };
inline constexpr Kernel kKernels[] = {Kernel::scalar, Kernel::avx2, Kernel::avx512};

/// "scalar", "avx2" or "avx512", as the setting kernel.scatter has them.
std::string_view kernel_name(Kernel kernel) noexcept;
/// By this build and the processor at hand.
bool is_supported(Kernel kernel) noexcept;

/// The loops of a kernel that is supported; null: the fused one.
const detail::BlockKernel* block_kernel(Kernel kernel, KeyHash hash) noexcept;

/// What the calibration found for one kernel.
struct KernelTime {
  Kernel kernel = Kernel::scalar;
  double ns_per_row = 0;
};

/// The widths and numbers of receivers that are told apart; those between count as the next larger.
inline constexpr uint32_t kKernelWidths[] = {8, 16, 24, 32, 64, 100, 128};
inline constexpr uint32_t kKernelReceivers[] = {1, 2, 3, 4, 5, 6, 8, 16, 32, 64};

/// Lets all supported kernels send the same rows, each some times; the shortest time of each. About a
/// tenth of a millisecond. Threads: any, one at a time.
std::vector<KernelTime> calibrate(KeyHash hash, uint32_t row_bytes, uint32_t receiver_count);

/// The one to take: the first, unless a later one is clearly faster.
Kernel fastest_of(const std::vector<KernelTime>& times) noexcept;

/// The kernel for rows of a width to that many receivers, by a calibration that is made once per process.
Kernel fastest_kernel(KeyHash hash, uint32_t row_bytes, uint32_t receiver_count);

/// What `kernel.scatter` asks for: a kernel's name, or auto. `setting` was checked (base/config.cc).
detail::SendKernels send_kernels(std::string_view setting, uint32_t row_bytes,
                                 uint32_t receiver_count);

// For kernels.cc: the loops, one file per instruction set. Null where this build has none.
const detail::BlockKernel* avx2_kernel(KeyHash hash) noexcept;
const detail::BlockKernel* avx512_kernel(KeyHash hash) noexcept;

}  // namespace faro::shuffle
