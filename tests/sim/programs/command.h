// The command of programs: runs them by their seeds, writes what they come to, and compares it with
// what another build has written.
#pragma once

#include <cstdint>
#include <string>

#include "sim/programs/record.h"

namespace faro::programs {

/// Programs of one kind.
struct Programs {
  /// What a seed decides before its program runs, for people.
  std::string (*describe)(uint64_t seed);
  /// Equal for equal seeds, in every build that behaves alike.
  RunResult (*run)(uint64_t seed, LeftOut left_out, bool keeps_text);
};

/// main(). Returns its exit code; exits by itself where the arguments are wrong.
int run_command(const Programs& programs, int count, char** arguments);

}  // namespace faro::programs
