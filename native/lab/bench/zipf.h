// Zipf's law, as benchmarks draw keys by it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace faro::bench {

/// One of the integers 0 … count-1, of which i has a share in proportion to (i + 1)^-exponent, more or less: the continuous
/// distribution with that density, cut to integers. `uniform`: from 0 up to 1.
inline uint64_t zipf(double uniform, uint64_t count, double exponent) noexcept {
  const auto all = static_cast<double>(count);
  const double rest = 1 - exponent;
  const double drawn = std::abs(rest) < 1e-9
                           ? std::pow(all, uniform)
                           : std::pow((std::pow(all, rest) - 1) * uniform + 1, 1 / rest);
  return std::min(static_cast<uint64_t>(drawn), count) - 1;
}
/// From a drawn integer of 64 bits.
inline double unit_interval(uint64_t drawn) noexcept {
  return static_cast<double>(drawn >> 11) * 0x1p-53;
}

}  // namespace faro::bench
