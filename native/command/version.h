// The version of this build.
#pragma once

#include <string>
#include <string_view>

namespace faro::command {

/// Version, commit and compiler: "faro 0.1.0 (3f2a…), GNU 12.2.0, Release".
std::string version_text(std::string_view program = "faro");

}  // namespace faro::command
