// What main does in the programs `faro` and `faro-lab`: sub-commands, help, version, exit codes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace faro::command {

/// A program with sub-commands.
struct Program {
  /// Adds a sub-command. When that is chosen, `exit_code` gets what main is to return.
  using AddCommand = void (*)(CLI::App& app, int& exit_code);

  std::string_view name;
  std::string_view what;  ///< at the top of its help
  std::string codes;      ///< at the end of its help: the exit codes
  std::vector<AddCommand> commands;
  /// Sub-commands that someone may look for here, and the program that has them.
  std::vector<std::string_view> elsewhere;
  std::string_view other;
};

/// All that main does; returns the exit code. Errors: on stderr, after the name of the program.
int run_program(const Program& program, int argc, char** argv);

}  // namespace faro::command
