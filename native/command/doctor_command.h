// `faro doctor`: what works on this machine, and how to fix what does not.
#pragma once

namespace CLI {
class App;
}

namespace faro::command {

/// Adds the sub-command. When it is chosen, `exit_code` gets what main is to return.
void add_doctor_command(CLI::App& app, int& exit_code);

}  // namespace faro::command
