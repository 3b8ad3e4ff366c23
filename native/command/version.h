// The version of this faro.
#pragma once

#include <string>

namespace faro::command {

/// Version, commit and compiler: "faro 0.1.0 (3f2a…), GNU 12.2.0, Release".
std::string version_text();

}  // namespace faro::command
