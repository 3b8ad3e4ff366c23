// QueryNodes: which nodes take part in a query, which of them it waits for, and which it has lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"

namespace faro::shuffle {

/// Threads: under the table's lock.
class QueryNodes {
 public:
  /// Until it is declared, all nodes take part.
  explicit QueryNodes(uint32_t count) : takes_part_(count, true) {}

  void declare(std::vector<bool> nodes) { takes_part_ = std::move(nodes); }
  bool contains(uint32_t node) const { return takes_part_[node]; }

  /// It needs the link with a node that is to come.
  void await(uint32_t node) { awaited_.insert(node); }
  void found(uint32_t node) { awaited_.erase(node); }
  bool awaits(uint32_t node) const { return awaited_.contains(node); }
  const std::set<uint32_t>& awaited() const { return awaited_; }
  /// Whether it has waited for links for so long, as far as ticks can tell. Call it at each tick.
  bool has_waited(base::Nanoseconds now, base::Nanoseconds limit) {
    if (awaited_.empty()) return false;
    if (!awaited_since_) awaited_since_ = now;
    return now - *awaited_since_ >= limit;
  }

  /// The first loss of a node counts.
  void lose(uint32_t node, const Status& cause) {
    losses_.emplace(node, cause);
    found(node);
  }
  void find_again(uint32_t node) { losses_.erase(node); }
  bool has_lost(uint32_t node) const { return losses_.count(node) != 0; }
  /// Why a node is lost; nullptr if it is not.
  const Status* loss(uint32_t node) const {
    const auto lost = losses_.find(node);
    return lost == losses_.end() ? nullptr : &lost->second;
  }
  /// Why the first lost node that takes part is lost; nullptr: all are there.
  const Status* first_loss() const {
    for (const auto& [node, cause] : losses_) {
      if (contains(node)) return &cause;
    }
    return nullptr;
  }

 private:
  std::vector<bool> takes_part_;
  std::map<uint32_t, Status> losses_;
  std::set<uint32_t> awaited_;
  std::optional<base::Nanoseconds> awaited_since_;
};

}  // namespace faro::shuffle
