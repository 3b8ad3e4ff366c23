// Runs: programs by their seeds, and what they come to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/send_path/program.h"
#include "sim/send_path/record.h"

namespace faro::send_path {

struct RunResult {
  uint64_t digest = 0;
  std::vector<Marked> calls;
  std::string violation;
  Tally tally;
  uint64_t sent = 0;
  uint64_t received = 0;
};

/// Equal for equal seeds, in every build of the same send path.
RunResult run_program(uint64_t seed, LeftOut left_out = 0, bool keeps_text = false);

}  // namespace faro::send_path
