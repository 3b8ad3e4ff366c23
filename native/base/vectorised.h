// One loop compiled for several instruction sets; which one runs is tried out on the processor at hand, once.
//
//   struct Doubled {
//     [[gnu::always_inline]] static inline void run(uint64_t* numbers, size_t count) { … }
//   };
//   uint64_t numbers[512] = {};
//   const auto doubled = base::fastest<Doubled>([&](auto loop) { loop(numbers, 512); });
//   doubled(…, …);
//
// The library is built for the least processor of its architecture. Loops whose time is the time of
// a query are worth more: 64-bit multiplications, for one, are vector instructions from AVX-512DQ on.
// With AVX2 they are put together from others, which on some processors takes longer than one by one.
#pragma once

#include <array>
#include <chrono>

#include "base/processor.h"

namespace faro::base {

namespace detail {

template <typename Loop, typename Result, typename... Arguments>
struct CompiledLoop {
  using Function = Result (*)(Arguments...);

  static Result plain(Arguments... arguments) { return Loop::run(arguments...); }
#ifdef FARO_HAS_X86_VECTORS
  [[gnu::target(FARO_TARGET_AVX2)]] static Result avx2(Arguments... arguments) {
    return Loop::run(arguments...);
  }
  [[gnu::target(FARO_TARGET_AVX512)]] static Result avx512(Arguments... arguments) {
    return Loop::run(arguments...);
  }
#endif

  /// Those that this processor can run.
  static std::array<Function, 3> supported() noexcept {
    std::array<Function, 3> loops = {plain};
#ifdef FARO_HAS_X86_VECTORS
    if (has_avx2()) loops[1] = avx2;
    if (has_avx512()) loops[2] = avx512;
#endif
    return loops;
  }
};

template <typename Loop, typename Result, typename... Arguments>
CompiledLoop<Loop, Result, Arguments...> compiled_loop(Result (*)(Arguments...));

}  // namespace detail

/// The function that runs Loop::run with the widest instructions here, for a loop that cannot be tried
/// out. Otherwise as `fastest`.
template <typename Loop>
auto widest() noexcept {
  const auto loops = decltype(detail::compiled_loop<Loop>(&Loop::run))::supported();
  auto last = loops[0];
  for (const auto loop : loops) {
    if (loop != nullptr) last = loop;
  }
  return last;
}

/// The function that runs Loop::run with the instructions that are fastest here: `sample(function)`
/// runs each a few times on the same arguments, some microseconds at most; the shortest time counts.
/// `run` is static and always_inline, so that it takes over the instruction set of its caller; its
/// arguments are cheap to copy. Threads: any. Blocks: never.
template <typename Loop, typename Sample>
auto fastest(const Sample& sample) noexcept {
  constexpr int kTurns = 16;
  const auto loops = decltype(detail::compiled_loop<Loop>(&Loop::run))::supported();
  auto best = loops[0];
  auto best_time = std::chrono::steady_clock::duration::max();
  for (const auto loop : loops) {
    if (loop == nullptr) continue;
    // Each on its own: wide instructions take some microseconds to come up to speed.
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto begin = std::chrono::steady_clock::now();
      sample(loop);
      const auto time = std::chrono::steady_clock::now() - begin;
      if (time >= best_time) continue;
      best_time = time;
      best = loop;
    }
  }
  return best;
}

}  // namespace faro::base
