// RowGenerator: the rows of a stage, known beforehand. Destinations, length and bytes of each are a function
// of (seed, query, stage, sender, number of the row at its sender), so a receiver knows exactly what it
// has to see next from each sender: rows once, whole and in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lab/workload/plan.h"

namespace faro::workload {

/// Threads: any; immutable. Receivers are numbered by their place in receivers(), senders are worker
/// numbers. What a row goes to is a target: a receiver or, in a stage with groups, a group of its sender's.
class RowGenerator {
 public:
  RowGenerator(uint64_t seed, StagePlan plan, uint32_t worker_count);

  const StagePlan& plan() const { return plan_; }
  const std::vector<uint32_t>& senders() const { return senders_; }  // worker numbers
  /// Worker numbers; with Delivery::node one of each node, with Delivery::replicate one for all.
  const std::vector<uint32_t>& receivers() const { return receivers_; }
  bool sends(uint32_t worker) const;
  /// receivers().size() if it is none.
  uint32_t receiver_of(uint32_t worker) const;

  uint64_t key(uint32_t sender, uint64_t row) const;
  uint64_t length(uint32_t sender, uint64_t row) const;
  /// Writes the row; `bytes` has its length.
  void fill(uint32_t sender, uint64_t row, std::span<std::byte> bytes) const;
  /// Targets of the row, at least one.
  void destinations(uint32_t sender, uint64_t row, std::vector<uint32_t>& to) const;
  bool is_for(uint32_t target, uint32_t sender, uint64_t row) const;
  /// The first row from `row` on that is for this target; kNone if there can be none.
  uint64_t next_for(uint32_t target, uint32_t sender, uint64_t row) const;
  static constexpr uint64_t kNone = UINT64_MAX;

  using Groups = std::vector<std::vector<uint32_t>>;
  /// Those of one sender; none where each receiver is a target.
  const Groups& groups(uint32_t sender) const;
  /// The targets of a sender that the receiver is, or is in.
  std::vector<uint32_t> targets_of(uint32_t receiver, uint32_t sender) const;

 private:
  uint32_t target_count(uint32_t sender) const;
  Groups draw_groups(uint32_t sender) const;
  uint64_t number() const { return uint64_t{plan_.query} * 64 + plan_.stage; }

  const uint64_t seed_;
  const StagePlan plan_;
  const std::vector<uint32_t> senders_;
  const std::vector<uint32_t> receivers_;
  std::map<uint32_t, Groups> groups_;  // by sender; none if the stage has no groups
};

}  // namespace faro::workload
