// The file that records how far simulated ranges of seeds have got.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "faro/status.h"
#include "lab/simulation/coverage.h"

namespace faro::command {

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

  /// The range as far as it got before; new if it was not begun by this build.
  SeedRange& find_or_add(uint64_t seed, uint64_t runs, const std::string& build);

  /// Replaces the file; it is never seen half written. Errors: system_error.
  Status save() const;

 private:
  explicit SeedRanges(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::vector<SeedRange> ranges_;
};

}  // namespace faro::command
