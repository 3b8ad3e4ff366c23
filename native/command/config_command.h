// `faro config`: all settings, and where each value comes from.
#pragma once

namespace CLI {
class App;
}

namespace faro::command {

/// Adds the sub-command. When it is chosen, `exit_code` gets what main is to return.
void add_config_command(CLI::App& app, int& exit_code);

}  // namespace faro::command
