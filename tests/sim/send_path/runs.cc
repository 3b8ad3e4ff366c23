#include "sim/send_path/runs.h"

namespace faro::send_path {

RunResult run_program(uint64_t seed, LeftOut left_out, bool keeps_text) {
  return programs::run_to_end<Program>(draw_plan(seed), left_out, keeps_text);
}

}  // namespace faro::send_path
