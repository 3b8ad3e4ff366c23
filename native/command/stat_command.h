// `faro stat` and `faro top`: what the nodes of this host are doing.
#pragma once

namespace CLI {
class App;
}

namespace faro::command {

/// Add the sub-commands. When one is chosen, `exit_code` gets what main is to return.
void add_stat_command(CLI::App& app, int& exit_code);
void add_top_command(CLI::App& app, int& exit_code);

}  // namespace faro::command
