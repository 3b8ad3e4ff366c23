// Chance: numbers that are a function of a few others, and sequences of them. Beside sim::Random, whose
// order of draws is that of a world's steps: what a plan or a worker draws here does not depend on who
// ran first.
#pragma once

#include <cstdint>

namespace faro::workload {

/// Mixes a 64-bit number (splitmix64's finalizer).
constexpr uint64_t mix(uint64_t value) noexcept {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

template <typename... Rest>
constexpr uint64_t mix(uint64_t first, uint64_t second, Rest... rest) noexcept {
  return mix(mix(first) ^ second, static_cast<uint64_t>(rest)...);
}

/// Threads: one.
class Chance {
 public:
  explicit Chance(uint64_t seed) noexcept : state_(seed) {}

  uint64_t next() noexcept { return mix(state_++); }
  uint64_t below(uint64_t bound) noexcept { return bound == 0 ? 0 : next() % bound; }
  uint64_t between(uint64_t least, uint64_t most) noexcept {
    return most <= least ? least : least + below(most - least + 1);
  }
  /// True once in `n` times; never when n is 0.
  bool one_in(uint64_t n) noexcept { return n != 0 && below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace faro::workload
