// Where a stored result comes from: version, compiler, machine and date.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "command/machine.h"

namespace faro::command {

/// JSON with members in the order they were added.
using Json = nlohmann::ordered_json;

/// JSON with line breaks, or on one line. A byte that belongs to no character of UTF-8 becomes
/// U+FFFD.
std::string json_text(const Json& json, bool pretty);

/// {"version", "commit", "compiler", "build_type", "machine": {…}, "date"}.
Json origin_json(const Machine& machine);

}  // namespace faro::command
