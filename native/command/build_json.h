// What a kept result says about its origin.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "command/machine.h"

namespace faro::command {

/// JSON with members in the order they were added.
using Json = nlohmann::ordered_json;

/// Version, commit and compiler: "faro 0.1.0 (3f2a…), GNU 12.2.0, Release".
std::string version_text();

/// {"version", "commit", "compiler", "build_type", "machine": {…}, "date"}.
Json origin_json(const Machine& machine);

}  // namespace faro::command
