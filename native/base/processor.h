// Which instructions the processor at hand has, of those that some loops are compiled for.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define FARO_HAS_X86_VECTORS 1
// For the attribute [[gnu::target(…)]].
#define FARO_TARGET_AVX2 "avx2"
#if defined(__clang__) && __clang_major__ >= 18 && __clang_major__ <= 20
// These want vectors of 512 bits to be asked for by name where the command line leaves them out, as zig's does.
#define FARO_TARGET_AVX512 "avx512f,avx512dq,avx512vl,popcnt,evex512"
#else
#define FARO_TARGET_AVX512 "avx512f,avx512dq,avx512vl,popcnt"
#endif
#endif

namespace faro::base {

/// Threads: any. Blocks: never.
inline bool has_avx2() noexcept {
#ifdef FARO_HAS_X86_VECTORS
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

/// The parts F, DQ (64-bit multiplications) and VL of it.
inline bool has_avx512() noexcept {
#ifdef FARO_HAS_X86_VECTORS
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}

}  // namespace faro::base
