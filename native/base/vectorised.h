// One loop compiled for several instruction sets; which one runs is chosen by the processor at hand, once.
//
//   struct Doubled {
//     [[gnu::always_inline]] static inline void run(uint64_t* numbers, size_t count) { … }
//   };
//   const auto doubled = base::vectorised<Doubled>();
//   doubled(numbers, count);
//
// The library is built for the least processor of its architecture. Loops whose time is the time of
// a query are worth more: 64-bit multiplications, for one, are vector instructions from AVX-512DQ on.
#pragma once

namespace faro::base {

namespace detail {

template <typename Loop, typename Result, typename... Arguments>
struct CompiledLoop {
  using Function = Result (*)(Arguments...);

  static Result plain(Arguments... arguments) { return Loop::run(arguments...); }
#if defined(__x86_64__) && defined(__GNUC__)
  [[gnu::target("avx2")]] static Result avx2(Arguments... arguments) {
    return Loop::run(arguments...);
  }
  [[gnu::target("avx512f,avx512dq,avx512vl")]] static Result avx512(Arguments... arguments) {
    return Loop::run(arguments...);
  }
#endif

  static Function choose() noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      return avx512;
    }
    if (__builtin_cpu_supports("avx2")) return avx2;
#endif
    return plain;
  }
};

template <typename Loop, typename Result, typename... Arguments>
CompiledLoop<Loop, Result, Arguments...> compiled_loop(Result (*)(Arguments...));

}  // namespace detail

/// The function that runs Loop::run with the widest instructions this processor has. `run` is static
/// and always_inline, so that it takes over the instruction set of its caller; its arguments are
/// cheap to copy. Threads: any. Blocks: never.
template <typename Loop>
auto vectorised() noexcept {
  return decltype(detail::compiled_loop<Loop>(&Loop::run))::choose();
}

}  // namespace faro::base
