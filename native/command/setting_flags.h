// The flags by which every sub-command takes settings, and how they become a Config.
#pragma once

#include <string>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"

namespace CLI {
class App;
}

namespace faro::command {

/// Threads: a value. Lives as long as the CLI::App that it was added to.
class SettingFlags {
 public:
  /// Adds --file and --set to a sub-command.
  void add_to(CLI::App& app);

  /// The file (--file, else FARO_CONFIG), then the environment, then --set: the later wins.
  /// Errors: config_invalid.
  Result<Config> load() const;

 private:
  std::string file_;
  std::vector<std::string> sets_;
};

/// Checks a configuration as a whole, also one that does not name its nodes (yet).
/// Errors: config_invalid.
Status validate_settings(const Config& config);

/// Sets `name` from a flag's text. Errors: config_invalid, with the flag in front.
Status set_from_flag(Config& config, std::string_view flag, std::string_view name,
                     const std::string& text);

}  // namespace faro::command
