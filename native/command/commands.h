// The sub-commands of `faro`, each in a file of its own.
#pragma once

namespace CLI {
class App;
}

namespace faro::command {

// Each function adds its sub-command. When that is chosen, `exit_code` gets what main is to return.

/// `faro config`: all settings, and where each value comes from.
void add_config_command(CLI::App& app, int& exit_code);
/// `faro doctor`: what works on this machine, and how to fix what does not.
void add_doctor_command(CLI::App& app, int& exit_code);
/// `faro explain`: why a query is stuck.
void add_explain_command(CLI::App& app, int& exit_code);
/// `faro plan`: what a cluster takes, against what this machine has.
void add_plan_command(CLI::App& app, int& exit_code);
/// `faro stat` and `faro top`: what the nodes of this host are doing.
void add_stat_command(CLI::App& app, int& exit_code);
void add_top_command(CLI::App& app, int& exit_code);

}  // namespace faro::command
