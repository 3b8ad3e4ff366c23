// Runs another program to its end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "faro/status.h"

namespace faro::bench {

struct ProgramRun {
  std::vector<std::string> command;  ///< the program, searched in PATH, and its arguments
  std::vector<std::pair<std::string, std::string>> environment;  ///< beside the inherited one
  uint64_t time_limit_ns = 120'000'000'000;
};

struct ProgramOutput {
  int exit_code = 0;
  std::string out;  ///< what it printed on stdout
  std::string err;  ///< and on stderr
};

/// Starts the program as leader of a process group of its own and waits for it. Past the time limit
/// the group is killed; if the caller is killed, the program gets SIGTERM, so that it can end what
/// it has started itself.
///
/// Threads: one that has no siblings, as it forks. Blocks: until the program has ended.
/// Errors: system_error (it cannot be started, or was killed by a signal), deadline_exceeded.
Result<ProgramOutput> run_program(const ProgramRun& run);

}  // namespace faro::bench
