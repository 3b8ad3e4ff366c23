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

/// The place of a row's value in the record of its scope, where it can be changed.
template <typename Values>
uint64_t& value_in(Values& values, const Description& row) {
  return *reinterpret_cast<uint64_t*>(reinterpret_cast<std::byte*>(&values) + row.offset);
}

/// Makes of the moments of a record that was read at `now` how long ago they were.
template <typename Values>
void count_until(uint64_t now, Scope scope, Values& values) {
  for (const Description& row : descriptions()) {
    if (row.scope != scope || row.kind != Kind::since) continue;
    uint64_t& value = value_in(values, row);
    value = value == 0 || value > now ? 0 : now - value;
  }
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
