// The program `faro-standard-bench`: of `faro-lab bench` the two-stage shuffle alone. It is what `./run bench` builds, in a
// fraction of the time that all of `faro-lab` takes to compile.
#include "command/exit_code.h"
#include "command/program.h"
#include "lab/command/bench_parts.h"

int main(int argc, char** argv) {
  using namespace faro::command;
  return run_program({.name = "faro-standard-bench",
                      .what = "The two-stage shuffle, as `faro-lab bench` runs it",
                      .codes = kExitCodeHelp,
                      .commands = {lab::add_two_stage_command},
                      .elsewhere = {},
                      .other = {}},
                     argc, argv);
}
