#include "command/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/return_if_error.h"

namespace faro::command {

Result<Config> load_settings(const std::string& named_file, const std::vector<std::string>& sets) {
  Config config;
  std::string file = named_file;
  if (file.empty()) {
    if (const char* named = std::getenv("FARO_CONFIG")) file = named;
  }
  if (!file.empty()) FARO_RETURN_IF_ERROR(config.load_file(file));
  FARO_RETURN_IF_ERROR(config.load_environment());
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Status(Code::config_invalid, fmt::format("--set {}: expected NAME=VALUE", set));
    }
    const Status status =
        config.set(set.substr(0, equals), std::string_view(set).substr(equals + 1), "--set");
    if (!status.ok()) {
      return Status(status.code(), fmt::format("--set {}: {}", set, status.message()));
    }
  }
  return config;
}

Status validate_settings(const Config& config) {
  if (!config.get("cluster.nodes").empty()) return config.validate();
  // The nodes of the cluster are known only where it is started, so assume as many as needed.
  const std::string workers = config.get("cluster.workers");
  const uint64_t listed =
      1 + static_cast<uint64_t>(std::count(workers.begin(), workers.end(), ','));
  const uint64_t count = std::max(listed, config.get_number("cluster.node") + 1);
  std::vector<std::string> nodes(count, "localhost:0");
  Config filled = config;
  FARO_RETURN_IF_ERROR(filled.set("cluster.nodes", fmt::format("{}", fmt::join(nodes, ","))));
  return filled.validate();
}

Status flag_error(std::string_view flag, std::string_view message) {
  return Status(Code::invalid_argument, fmt::format("{}: {}", flag, message));
}

Status set_from_flag(Config& config, std::string_view flag, std::string_view name,
                     const std::string& text) {
  if (text.empty()) return Status::Ok();
  const Status status = config.set(name, text, flag);
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("{}: {}", flag, status.message()));
}

}  // namespace faro::command
