// The counters of one record as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "command/build_json.h"
#include "counters/descriptions.h"

namespace faro::command {

/// By the names of counters.def; "per_second" beside each total. `whole`: the NodeChange or EndpointChange that the record is of.
template <typename Values, typename Change>
Json values_json(counters::Scope scope, const Values& now, const Values& change,
                 const Change& whole) {
  Json json;
  counters::for_each_counter(scope, now, [&](const counters::Description& row, uint64_t value) {
    json[row.name.data()] = value;
  });
  if (whole.seconds == 0) return json;
  counters::for_each_counter(scope, change, [&](const counters::Description& row, uint64_t added) {
    if (row.kind == counters::Kind::total)
      json["per_second"][row.name.data()] = whole.per_second(added);
  });
  return json;
}

}  // namespace faro::command
