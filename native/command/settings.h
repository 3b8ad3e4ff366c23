// The settings of a command: makes a Config of a file, the environment and flags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::command {

/// The file (if its name is empty, the one that FARO_CONFIG names), then the environment, then `sets`,
/// each NAME=VALUE; a later one wins. Errors: config_invalid.
Result<Config> load_settings(const std::string& file, const std::vector<std::string>& sets);

/// Checks a configuration as a whole, even one that does not name its nodes yet.
/// Errors: config_invalid.
Status validate_settings(const Config& config);

/// An invalid_argument; the message begins with the flag.
Status flag_error(std::string_view flag, std::string_view message);

/// Sets `name` from a flag's text, unless that is empty: the flag was not given. Errors: config_invalid; the message begins with the flag.
Status set_from_flag(Config& config, std::string_view flag, std::string_view name,
                     const std::string& text);

}  // namespace faro::command
