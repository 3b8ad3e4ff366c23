// Rows: each is a function of the seed, its stage, its sender and its number, so that a receiver knows what has to come.
#pragma once

#include <faro/hash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "chance.h"
#include "round_plan.h"

namespace outside {

/// Threads: any.
class Rows {
 public:
  Rows(uint64_t seed, const StagePlan& plan)
      : seed_(mix(seed, plan.query, plan.number)), plan_(plan) {}

  uint64_t count(uint32_t sender) const {
    return mix(seed_, sender, 0x636f756e74) % (plan_.most_rows + 1);
  }
  uint64_t key(uint32_t sender, uint64_t row) const {
    return plan_.spread == Spread::one_key ? seed_ : mix(seed_, sender, row);
  }
  size_t length(uint32_t sender, uint64_t row) const {
    if (plan_.row_bytes != 0) return plan_.row_bytes;
    const uint64_t drawn = mix(seed_, sender, row, 0x6c656e);
    return drawn % 8 == 0 ? drawn / 8 % 16 : drawn / 8 % (plan_.most_bytes + uint64_t{1});
  }
  /// The key, as far as there is room for it, and bytes that differ from row to row.
  void fill(uint32_t sender, uint64_t row, std::span<std::byte> to) const {
    const uint64_t first = key(sender, row);
    const uint64_t rest = mix(seed_, sender, row, 0x62797465);
    for (size_t at = 0; at < to.size(); at += sizeof(uint64_t)) {
      const uint64_t word = at == 0 ? first : rest + at * 0x9E3779B97F4A7C15u;
      std::memcpy(to.data() + at, &word, std::min(sizeof word, to.size() - at));
    }
  }
  /// Receivers, as senders number them.
  void destinations(uint32_t sender, uint64_t row, std::vector<uint32_t>& to) const {
    const uint32_t receivers = plan_.place_count;
    to.clear();
    if (plan_.spread == Spread::repartition || plan_.spread == Spread::one_key) {
      to.push_back(faro::partition(faro::FinalizerHash{}(key(sender, row)), receivers));
      return;
    }
    for (uint32_t r = 0; r < receivers; ++r) {
      if (plan_.spread == Spread::broadcast || mix(seed_, sender, row, r) % 2 == 0) to.push_back(r);
    }
    if (to.empty()) to.push_back(static_cast<uint32_t>(key(sender, row) % receivers));
  }
  /// The first row from `row` on that is for this receiver; count() if there is none.
  uint64_t next_for(uint32_t receiver, uint32_t sender, uint64_t row) const {
    std::vector<uint32_t> to;
    for (const uint64_t end = count(sender); row < end; ++row) {
      destinations(sender, row, to);
      if (std::find(to.begin(), to.end(), receiver) != to.end()) return row;
    }
    return row;
  }
  const StagePlan& plan() const { return plan_; }

 private:
  const uint64_t seed_;
  const StagePlan& plan_;
};

}  // namespace outside
