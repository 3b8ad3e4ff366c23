// Runs: programs by their seeds, and what they come to.
#pragma once

#include <cstdint>

#include "sim/programs/record.h"
#include "sim/send_path/program.h"

namespace faro::send_path {

/// Equal for equal seeds, in every build of the same send path.
RunResult run_program(uint64_t seed, LeftOut left_out = 0, bool keeps_text = false);

}  // namespace faro::send_path
