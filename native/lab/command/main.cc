// The program `faro-lab`: measures and tests Faro. Each sub-command has a file of its own.
#include "command/exit_code.h"
#include "command/program.h"
#include "lab/command/commands.h"

int main(int argc, char** argv) {
  using namespace faro::command;
  return run_program(
      {.name = "faro-lab",
       .what = "The laboratory of Faro, the shuffle of a distributed query engine",
       .codes = kExitCodeHelp,
       .commands = {lab::add_bench_command, lab::add_simulate_command, lab::add_soak_command},
       .elsewhere = {"plan", "doctor", "stat", "top", "explain", "config"},
       .other = "faro"},
      argc, argv);
}
