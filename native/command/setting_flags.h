// The flags for settings that every sub-command has.
#pragma once

#include <string>
#include <vector>

#include "command/settings.h"

namespace CLI {
class App;
}

namespace faro::command {

/// Threads: a value. Lives as long as the CLI::App that it was added to.
class SettingFlags {
 public:
  /// Adds --file and --set to a sub-command.
  void add_to(CLI::App& app);

  /// The file (--file, else FARO_CONFIG), then the environment, then --set: a later one wins.
  /// Errors: config_invalid.
  Result<Config> load() const;
  /// What load() gives, checked as a whole. Errors: config_invalid.
  Result<Config> load_valid() const;

 private:
  std::string file_;
  std::vector<std::string> sets_;
};

}  // namespace faro::command
