// node_state_programs: runs programs, and compares what they come to with another build (README.md).
#include "sim/node_state/plan.h"
#include "sim/node_state/program.h"
#include "sim/programs/command.h"

int main(int count, char** arguments) {
  namespace node_state = faro::node_state;
  return faro::programs::run_command(
      {[](uint64_t seed) { return node_state::draw_plan(seed).to_string(); },
       node_state::run_program},
      count, arguments);
}
