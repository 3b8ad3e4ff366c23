// `faro explain`: why a query is stuck.
#pragma once

namespace CLI {
class App;
}

namespace faro::command {

/// Adds the sub-command. When it is chosen, `exit_code` gets what main is to return.
void add_explain_command(CLI::App& app, int& exit_code);

}  // namespace faro::command
