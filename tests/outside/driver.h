// The driver: rounds of nodes that are processes, and the oracle over what they say.
#pragma once

#include <cstdint>
#include <optional>

namespace outside {

struct DriverOptions {
  uint64_t seed = 0;
  double seconds = 10;
  std::optional<uint64_t> round;  // only this one
  bool is_verbose = false;
};

/// Returns the exit code: 0 if every round was as it has to be.
int run_driver(const DriverOptions& options);

}  // namespace outside
