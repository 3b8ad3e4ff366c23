#include "command/build_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "build_info/build_info.h"

namespace faro::command {

std::string version_text() {
  return fmt::format("faro {} ({}), {}, {}", build_info::kVersion, build_info::kCommit,
                     build_info::kCompiler, build_info::kBuildType);
}

Json origin_json(const Machine& machine) {
  Json json;
  json["version"] = build_info::kVersion;
  json["commit"] = build_info::kCommit;
  json["compiler"] = build_info::kCompiler;
  json["build_type"] = build_info::kBuildType;
  json["machine"] = {{"processors", machine.processors},
                     {"model", machine.processor_model},
                     {"kernel", machine.kernel}};
  json["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return json;
}

}  // namespace faro::command
