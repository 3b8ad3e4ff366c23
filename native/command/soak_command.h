// `faro soak`: clusters of real processes under faults, for any length of time.
#pragma once

namespace CLI {
class App;
}

namespace faro::command {

/// Adds the sub-command. When it is chosen, `exit_code` gets what main is to return.
void add_soak_command(CLI::App& app, int& exit_code);

}  // namespace faro::command
