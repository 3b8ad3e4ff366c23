// QueryNodes: which nodes take part in a query, and which nodes it has lost.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "faro/status.h"

namespace faro::shuffle {

/// Threads: under the table's lock.
class QueryNodes {
 public:
  /// Until it is declared, all nodes take part.
  explicit QueryNodes(uint32_t count) : takes_part_(count, true) {}

  void declare(std::vector<bool> nodes) { takes_part_ = std::move(nodes); }
  bool contains(uint32_t node) const { return takes_part_[node]; }

  /// The first loss of a node counts.
  void lose(uint32_t node, const Status& cause) { losses_.emplace(node, cause); }
  void find_again(uint32_t node) { losses_.erase(node); }
  bool has_lost(uint32_t node) const { return losses_.count(node) != 0; }
  /// Why a node is lost; nullptr if it is not.
  const Status* loss(uint32_t node) const {
    const auto lost = losses_.find(node);
    return lost == losses_.end() ? nullptr : &lost->second;
  }
  /// The same of the first one that takes part; nullptr: all are there.
  const Status* first_loss() const {
    for (const auto& [node, cause] : losses_) {
      if (contains(node)) return &cause;
    }
    return nullptr;
  }

 private:
  std::vector<bool> takes_part_;
  std::map<uint32_t, Status> losses_;
};

}  // namespace faro::shuffle
