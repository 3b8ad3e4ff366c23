// RowGenerator: the rows of a stage, known beforehand. Destinations, length and bytes of each are a function
// of (seed, query, stage, sender, number of the row at its sender), so a receiver knows exactly what it
// has to see next from each sender: rows once, whole and in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/workload/plan.h"

namespace faro::workload {

/// Threads: any; immutable. Receivers are numbered by their place in receivers(), senders are worker
/// numbers.
class RowGenerator {
 public:
  RowGenerator(uint64_t seed, StagePlan plan, uint32_t worker_count);

  const StagePlan& plan() const { return plan_; }
  const std::vector<uint32_t>& senders() const { return senders_; }      // worker numbers
  const std::vector<uint32_t>& receivers() const { return receivers_; }  // worker numbers
  bool sends(uint32_t worker) const;
  /// receivers().size() if it is none.
  uint32_t receiver_of(uint32_t worker) const;

  uint64_t key(uint32_t sender, uint64_t row) const;
  uint64_t length(uint32_t sender, uint64_t row) const;
  /// Writes the row; `bytes` has its length.
  void fill(uint32_t sender, uint64_t row, std::span<std::byte> bytes) const;
  /// Receivers of the row, at least one.
  void destinations(uint32_t sender, uint64_t row, std::vector<uint32_t>& to) const;
  bool is_for(uint32_t receiver, uint32_t sender, uint64_t row) const;
  /// The first row from `row` on that is for this receiver; kNone if there can be none.
  uint64_t next_for(uint32_t receiver, uint32_t sender, uint64_t row) const;
  static constexpr uint64_t kNone = UINT64_MAX;

 private:
  uint64_t number() const { return uint64_t{plan_.query} * 64 + plan_.stage; }

  const uint64_t seed_;
  const StagePlan plan_;
  const std::vector<uint32_t> senders_;
  const std::vector<uint32_t> receivers_;
};

}  // namespace faro::workload
