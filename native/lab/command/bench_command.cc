#include <CLI/CLI.hpp>

#include "command/exit_code.h"
#include "lab/command/bench_parts.h"
#include "lab/command/commands.h"

namespace faro::command::lab {

void add_bench_command(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand(
      "bench", "The two-stage shuffle and other benchmarks, each a sub-command");
  command.require_subcommand(1);
  command.footer("`./run bench` prints one table, `./run evaluate` measures everything.\n" +
                 std::string(kExitCodeHelp));
  add_two_stage_command(command, exit_code);
  add_kernels_command(command, exit_code);
  add_channel_command(command, exit_code);
  add_link_command(command, exit_code);
  add_receive_command(command, exit_code);
  add_row_commands(command, exit_code);
  add_delivery_commands(command, exit_code);
  add_groups_command(command, exit_code);
  add_draining_commands(command, exit_code);
  add_operators_command(command, exit_code);
}

}  // namespace faro::command::lab
