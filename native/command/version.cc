#include "command/version.h"

#include <fmt/format.h>

#include "build_info/build_info.h"

namespace faro::command {

std::string version_text(std::string_view program) {
  return fmt::format("{} {} ({}), {}, {}", program, build_info::kVersion, build_info::kCommit,
                     build_info::kCompiler, build_info::kBuildType);
}

}  // namespace faro::command
