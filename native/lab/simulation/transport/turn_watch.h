// TurnWatch: the turns of all nodes of a simulated cluster, as nobody in it sees them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/schedule/turns.h"

namespace faro::sim {

/// Threads: its world's.
class TurnWatch {
 public:
  struct Counts {
    uint64_t bytes = 0;         // of rows that nodes with turns have sent
    uint64_t turn_bytes = 0;    // of these, in turns
    uint64_t turn_sends = 0;    // how often rows were sent in a turn
    uint64_t shared_sends = 0;  // of these, while another node had its turn for the same target
  };

  void add(uint32_t node, const transport::schedule::Turns& turns) {
    all_.push_back({node, &turns});
  }
  void remove(const transport::schedule::Turns& turns) {
    std::erase_if(all_, [&](const auto& each) { return each.second == &turns; });
  }

  /// The node has sent rows to `target`. Whether another node has its turn for the same target now.
  bool note_sent(uint32_t node, uint32_t target, uint64_t bytes, bool is_turn) {
    counts_.bytes += bytes;
    if (!is_turn) return false;
    counts_.turn_bytes += bytes;
    ++counts_.turn_sends;
    const bool is_shared = std::any_of(all_.begin(), all_.end(), [&](const auto& each) {
      // Its own number is what the turn of a node is for that has none.
      return each.first != node && each.first != target && each.second->target() == target;
    });
    counts_.shared_sends += is_shared;
    return is_shared;
  }

  /// No round is on there.
  bool is_at_rest(uint32_t node) const {
    return std::all_of(all_.begin(), all_.end(), [&](const auto& each) {
      return each.first != node || each.second->is_at_rest();
    });
  }
  const Counts& counts() const { return counts_; }

 private:
  std::vector<std::pair<uint32_t, const transport::schedule::Turns*>> all_;  // by node
  Counts counts_;
};

}  // namespace faro::sim
