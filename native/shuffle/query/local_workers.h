// LocalWorkers: the workers of this node that take part in a query, and which of them have not ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace faro::shuffle {

/// Workers by their numbers in the cluster; all are of this node. Threads: under the table's lock.
class LocalWorkers {
 public:
  /// Until the query is declared, all take part.
  LocalWorkers(uint32_t first, uint32_t count)
      : first_(first), takes_part_(count, true), pending_(count, true) {}

  void declare(const std::vector<uint32_t>& workers) {
    std::vector<bool> declared(takes_part_.size(), workers.empty());
    for (const uint32_t worker : workers) {
      if (worker >= first_ && worker - first_ < declared.size()) declared[worker - first_] = true;
    }
    takes_part_ = pending_ = std::move(declared);
  }
  /// A worker's part is over. Whether it was not before.
  bool end(uint32_t worker) {
    const bool was_pending = pending_[worker - first_];
    pending_[worker - first_] = false;
    return was_pending;
  }

  uint32_t count() const { return static_cast<uint32_t>(takes_part_.size()); }
  uint32_t first() const { return first_; }
  bool contains(uint32_t worker) const { return takes_part_[worker - first_]; }
  bool is_pending(uint32_t worker) const { return pending_[worker - first_]; }
  bool has_ended(uint32_t worker) const { return contains(worker) && !is_pending(worker); }
  bool all_have_ended() const {
    return std::find(pending_.begin(), pending_.end(), true) == pending_.end();
  }
  const std::vector<bool>& pending() const { return pending_; }

 private:
  uint32_t first_;
  std::vector<bool> takes_part_;
  std::vector<bool> pending_;
};

}  // namespace faro::shuffle
