#include "command/setting_flags.h"

#include <CLI/CLI.hpp>

namespace faro::command {

void SettingFlags::add_to(CLI::App& app) {
  app.add_option("--file", file_, "TOML file of settings (default: the one that FARO_CONFIG names)")
      ->type_name("PATH");
  app.add_option("--set", sets_, "A setting, as often as needed (`faro config` lists all)")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->allow_extra_args(false);
}

Result<Config> SettingFlags::load() const { return load_settings(file_, sets_); }

Result<Config> SettingFlags::load_valid() const {
  Result<Config> config = load();
  if (!config) return config;
  const Status status = validate_settings(*config);
  if (!status.ok()) return status;
  return config;
}

}  // namespace faro::command
