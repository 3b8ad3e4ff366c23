// The program `faro`: plans, checks and watches clusters. Each sub-command has a file of its own.
#include <string>

#include "command/commands.h"
#include "command/exit_code.h"
#include "command/program.h"

int main(int argc, char** argv) {
  using namespace faro::command;
  return run_program({.name = "faro",
                      .what = "Faro: the shuffle of a distributed query engine",
                      .codes = std::string(kExitCodeHelp) + kWaitsHelp,
                      .commands = {add_plan_command, add_doctor_command, add_stat_command,
                                   add_top_command, add_explain_command, add_config_command},
                      .elsewhere = {"bench", "simulate", "soak"},
                      .other = "faro-lab"},
                     argc, argv);
}
