#include "counters/operator_slots.h"

namespace faro::counters {

OperatorValues OperatorRecord::load(OperatorState& of) const noexcept {
  const uint64_t before = state.sequence();
  const OperatorValues values = values_of<OperatorValues>(counters);
  if (!state.load(of) || state.sequence() != before) of = {};
  return values;
}

OperatorRecord* OperatorSlots::take(const OperatorState& state) noexcept {
  for (OperatorRecord& record : records_) {
    OperatorState taken;
    if (!record.state.load(taken) || taken.kind != 0) continue;
#define FARO_OPERATOR_COUNTER(id, name, kind, help) set(record.counters.name, 0);
#include "counters/counters.def"
    record.state.store(state);
    return &record;
  }
  return nullptr;
}

void OperatorSlots::free(OperatorRecord* record) noexcept {
  if (record != nullptr) record->state.store({});
}

// Both are written by the worker alone. A value that falls is added as what it is less, modulo 2^64.
void OperatorSlots::count(OperatorRecord* record, uint64_t kind, const OperatorValues& now,
                          OperatorValues& before) noexcept {
  OperatorCounters& total = totals_[kind - 1];
#define FARO_OPERATOR_COUNTER(id, name, kind, help)                        \
  if (now.name != before.name) {                                           \
    counters::count(total.name, now.name - before.name);                   \
    if (record != nullptr) counters::set(record->counters.name, now.name); \
  }
#include "counters/counters.def"
  before = now;
}

}  // namespace faro::counters
