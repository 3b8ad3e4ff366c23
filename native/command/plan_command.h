// `faro plan`: what a cluster takes, against what this machine has.
#pragma once

namespace CLI {
class App;
}

namespace faro::command {

/// Adds the sub-command. When it is chosen, `exit_code` gets what main is to return.
void add_plan_command(CLI::App& app, int& exit_code);

}  // namespace faro::command
