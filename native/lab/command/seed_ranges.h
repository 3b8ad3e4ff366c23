// The file that records how much of each range of seeds was simulated.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "faro/status.h"
#include "lab/simulation/coverage.h"

namespace faro::command::lab {

/// Seeds seed … seed + runs - 1, in order.
struct SeedRange {
  uint64_t seed = 1;
  uint64_t runs = 0;
  std::string build;  ///< that ran it: runs of other builds do not count
  uint64_t done = 0;  ///< without a violation
  double seconds = 0;
  uint64_t hash = 0;  ///< of the hashes of all runs done
  simulation::Coverage coverage;
};

/// Threads: one, and one process at a time: the file is read once and written as a whole.
class SeedRanges {
 public:
  /// Errors: config_invalid if the file exists and cannot be read, or is something else.
  static Result<SeedRanges> load(std::string path);

  /// The recorded progress of the range. A range that this build has not begun is new.
  SeedRange& find_or_add(uint64_t seed, uint64_t runs, const std::string& build);

  /// Replaces the file atomically. Errors: system_error.
  Status save() const;

 private:
  explicit SeedRanges(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::vector<SeedRange> ranges_;
};

}  // namespace faro::command::lab
