// TakenRows: the rows that all workers of a node were handed out of stages with delivery to nodes, of which each has some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "chance.h"

namespace outside {

/// How many rows, whichever their order, and a sum over their bytes.
struct RowSum {
  uint64_t rows = 0;
  uint64_t sum = 0;

  void add(uint32_t sender, std::span<const std::byte> row) {
    uint64_t hash = mix(sender, row.size());
    for (const std::byte each : row) hash = (hash ^ static_cast<uint64_t>(each)) * 0x100000001b3u;
    ++rows;
    sum += mix(hash, 1);
  }
  void add(const RowSum& other) {
    rows += other.rows;
    sum += other.sum;
  }
  bool operator==(const RowSum&) const = default;
};

/// Threads: any.
class TakenRows {
 public:
  void add(uint32_t query, uint32_t stage, const RowSum& taken) {
    const std::lock_guard lock(mutex_);
    stages_[{query, stage}].taken.add(taken);
  }
  /// A worker has come to the end of stream. True: so have all `workers`, and `all` is what they were handed out together.
  bool end(uint32_t query, uint32_t stage, size_t workers, RowSum& all) {
    const std::lock_guard lock(mutex_);
    Stage& of = stages_[{query, stage}];
    all = of.taken;
    return ++of.ended == workers;
  }

 private:
  struct Stage {
    RowSum taken;
    size_t ended = 0;  // workers that have come to the end
  };

  std::mutex mutex_;
  std::map<std::pair<uint32_t, uint32_t>, Stage> stages_;  // by query and number
};

}  // namespace outside
