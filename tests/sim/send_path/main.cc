// send_path_programs: runs programs, and compares what they come to with another build (README.md).
#include "sim/programs/command.h"
#include "sim/send_path/plan.h"
#include "sim/send_path/runs.h"

int main(int count, char** arguments) {
  namespace send_path = faro::send_path;
  return faro::programs::run_command(
      {[](uint64_t seed) { return send_path::draw_plan(seed).to_string(); },
       send_path::run_program},
      count, arguments);
}
