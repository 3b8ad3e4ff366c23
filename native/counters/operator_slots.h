// OperatorSlots: where the operators of one worker count.
#pragma once

#include <cstdint>
#include <span>

#include "counters/layout.h"
#include "counters/reading.h"

namespace faro::counters {

/// Threads: the worker; any for `each` and `total`. Valid as long as the counter file.
class OperatorSlots {
 public:
  OperatorSlots(std::span<OperatorRecord> records, std::span<OperatorCounters> totals) noexcept
      : records_(records), totals_(totals) {}

  /// Shows an operator from now on, of which nothing is counted yet. Null if there is no room: it counts in the totals alone.
  OperatorRecord* take(const OperatorState& state) noexcept;
  /// Shows it no more.
  static void free(OperatorRecord* record) noexcept;

  /// Counts what an operator has done since `before`, which becomes `now`.
  void count(OperatorRecord* record, uint64_t kind, const OperatorValues& now,
             OperatorValues& before) noexcept;

  /// Calls visit(state, values) for every operator that is shown.
  template <typename Visit>
  void each(Visit&& visit) const {
    for (const OperatorRecord& record : records_) {
      OperatorState state;
      const OperatorValues values = record.load(state);
      if (state.kind != 0) visit(state, values);
    }
  }
  /// What all operators of a kind have counted, from 1.
  OperatorValues total(uint64_t kind) const noexcept {
    return values_of<OperatorValues>(totals_[kind - 1]);
  }

 private:
  std::span<OperatorRecord> records_;
  std::span<OperatorCounters> totals_;  // by kind, from 1
};

}  // namespace faro::counters
