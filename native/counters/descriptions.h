// The rows of counters.def as data.
#pragma once

#include <span>
#include <string_view>

#include "counters/layout.h"

namespace faro::counters {

/// In the order of counters.def.
std::span<const Description> descriptions();
/// The help text of a row, by its place in `descriptions`.
std::string_view help(size_t row);

/// The value of a row in the record of its scope.
template <typename Values>
uint64_t value_at(const Values& values, const Description& row) {
  uint64_t value;
  __builtin_memcpy(&value, reinterpret_cast<const std::byte*>(&values) + row.offset, sizeof value);
  return value;
}

/// Calls visit(description, value) for every counter of a record of values.
template <typename Values, typename Visit>
void for_each_counter(Scope scope, const Values& values, Visit&& visit) {
  for (const Description& row : descriptions()) {
    if (row.scope != scope) continue;
    visit(row, value_at(values, row));
  }
}

}  // namespace faro::counters
