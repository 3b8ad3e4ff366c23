// What programs draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>

#include "lab/workload/chance.h"

namespace faro::programs {

using workload::Chance;

template <typename Value>
Value one_of(Chance& chance, std::initializer_list<Value> values) {
  return *(values.begin() + chance.below(values.size()));
}

/// The index of one of these weights, not all of which are 0.
inline size_t draw_weighted(Chance& chance, std::span<const uint32_t> weights) {
  uint64_t drawn = chance.below(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
  size_t index = 0;
  while (drawn >= weights[index]) drawn -= weights[index++];
  return index;
}

}  // namespace faro::programs
