// What the programs of the peers share: flags, and one line of JSON for tests/evaluate to read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/bench/process_group.h"
#include "lab/bench/two_stage_job.h"

namespace faro::evaluate {

struct PeerFlags {
  bench::TwoStageJob job;
  uint32_t rounds = 2;  ///< the first one warms up
};

/// --processes N --workers N --rows N --rounds N, all optional; other flags are left to the caller.
/// Ends the program with an explanation if a number is none or the job is invalid.
PeerFlags read_flags(int argc, char** argv);

/// The value of --<name>, else `otherwise`.
std::string flag(int argc, char** argv, const std::string& name, const std::string& otherwise);

/// Prints what all rounds took, the rows that came and their checksum, each compared with what the
/// job expects. Returns the exit code: 0 if all are as expected.
int print_rounds(const bench::TwoStageJob& job, const std::string& version,
                 const std::vector<bench::RoundTotals>& rounds);

/// What a round began with, and what it took since. CPU: user and system time of this process.
class RoundClock {
 public:
  uint64_t start_ns() const noexcept { return start_ns_; }
  static uint64_t now_ns();
  uint64_t cpu_taken_ns() const { return bench::process_cpu_ns() - start_cpu_ns_; }

 private:
  const uint64_t start_cpu_ns_ = bench::process_cpu_ns();
  const uint64_t start_ns_ = now_ns();
};

}  // namespace faro::evaluate
