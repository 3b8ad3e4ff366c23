// Random: the only source of chance in a simulation; the same numbers on every platform.
#pragma once

#include <bit>
#include <cstdint>

namespace faro::sim {

/// xoshiro256** (Blackman, Vigna 2018), seeded through splitmix64. Not <random>: the standard's
/// distributions differ between libraries, and a seed has to mean the same run everywhere.
/// Threads: one.
class Random {
 public:
  explicit Random(uint64_t seed) noexcept {
    for (uint64_t& word : state_) {
      seed += 0x9E3779B97F4A7C15u;
      uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
      word = mixed ^ (mixed >> 31);
    }
  }

  uint64_t next() noexcept {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// 0 … bound - 1; 0 when bound is 0. The bias of the modulo, bound / 2^64, does not matter here.
  uint64_t below(uint64_t bound) noexcept { return bound == 0 ? 0 : next() % bound; }

  /// least … most, both included.
  uint64_t between(uint64_t least, uint64_t most) noexcept {
    return most <= least ? least : least + below(most - least + 1);
  }

  /// True once in `n` times on average; never when n is 0.
  bool one_in(uint64_t n) noexcept { return n != 0 && below(n) == 0; }

 private:
  uint64_t state_[4];
};

}  // namespace faro::sim
