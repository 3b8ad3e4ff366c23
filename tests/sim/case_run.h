// One run of a case over a simulated cluster.
#pragma once

#include <cstdint>
#include <string>

#include "sim/cluster.h"
#include "support/cases.h"
#include "support/session_cluster.h"

namespace faro::test {

/// What runs did together; printed, so that a test that no longer reaches something is seen.
struct Coverage {
  uint64_t runs = 0, rows = 0, workers = 0;
  uint64_t with_memory = 0;  // runs that spilled rows to memory
  uint64_t with_file = 0;    // in the file
  uint64_t with_out_overflow = 0;
  uint64_t with_large_rows = 0;
  uint64_t with_stops = 0, with_cancels = 0, with_held_batches = 0, with_detached = 0,
           with_claims = 0;

  std::string to_string() const;
};

/// Equal seeds, shapes and settings give exactly equal runs. Failures are gtest failures. Returns
/// the hash of all that happened.
uint64_t run_in_simulation(const Case& what, uint64_t seed, ClusterShape shape,
                           const SettingList& settings, const CaseScale& scale, Coverage& coverage);

}  // namespace faro::test
