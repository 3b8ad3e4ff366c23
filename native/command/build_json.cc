#include "command/build_json.h"

#include <nlohmann/json.hpp>

#include <ctime>

#include "build_info/build_info.h"

namespace faro::command {

std::string json_text(const Json& json, bool pretty) {
  return json.dump(pretty ? 2 : -1, ' ', false, Json::error_handler_t::replace);
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
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  json["date"] = date;
  return json;
}

}  // namespace faro::command
