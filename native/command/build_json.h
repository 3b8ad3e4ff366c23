// Where a stored result comes from: version, compiler, machine and date.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "command/machine.h"

namespace faro::command {

/// JSON with members in the order they were added.
using Json = nlohmann::ordered_json;

/// {"version", "commit", "compiler", "build_type", "machine": {…}, "date"}.
Json origin_json(const Machine& machine);

}  // namespace faro::command
