// ChurnLedger: what the processes of a run, its coordinator and its checker know of each other, beside what they say through Faro.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

#include "lab/simulation/ledger.h"

namespace faro::simulation {

/// Queries of a run, at most.
inline constexpr size_t kQueryLimit = 64;

/// Which processes a query is of, and what may have come between.
struct QueryOfProcesses {
  std::map<uint32_t, uint32_t> processes;  // by number: of participants and the issuer
  uint32_t issuer = 0;                     // process
  bool has_begun = false;                  // its issuer has declared it
  bool is_cancelled = false;
  /// One of them was drained somewhere before the query was declared there, and its issuer was not linked there: a link
  /// that it needs may be closed.
  bool is_too_late = false;
};

/// What has happened to a process.
struct Fate {
  bool is_lost = false;  // it was killed, or removed while it lived: queries that need it fail
  bool comes_back =
      false;            // it was killed, and others are not told: another process takes its place
  bool leaves = false;  // it was drained, and closes its session
  bool is_narrow = false;
};

/// Threads: its world's.
struct ChurnLedger {
  Ledger queries;                    // by index, as of a fixed cluster
  std::vector<QueryOfProcesses> of;  // by index
  std::vector<Fate> fates;           // by process
  /// Links that a process has let go of, as their other end was drained: (the one, the other).
  std::set<std::pair<uint32_t, uint32_t>> let_go;
  std::string story;                        // what was decided, a line each
  std::map<std::string, uint64_t> changes;  // how often what happened

  void tell(base::Nanoseconds now, const std::string& what) {
    story += fmt::format("  at {:.3f} ms: {}\n", static_cast<double>(now) / 1e6, what);
  }
};

}  // namespace faro::simulation
