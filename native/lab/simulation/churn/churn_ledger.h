// ChurnLedger: what the processes of a run, its coordinator and its checker know of each other, beside what they say through Faro.
#pragma once

#include <fmt/format.h>

#include <algorithm>
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
  base::Nanoseconds cancelled_at = base::kForever;
  /// Numbers of those whose drain had begun somewhere before the query was declared there, while its issuer was not linked (as the drain was ordered, or the query came): a
  /// link with them that it needs may be closed.
  std::set<uint32_t> too_late;
  std::set<uint32_t> taken;  // workers that have begun with it, or will
};

/// What has happened to a process.
struct Fate {
  /// When it was killed, or removed while it lived: from then on queries that need it fail.
  base::Nanoseconds lost_at = base::kForever;
  base::Nanoseconds leaves_at = base::kForever;  // when it was drained, and closes its session
  bool comes_back = false;  // it was killed, and others are not told: another takes its place
  bool ends = false;        // as all do in the end, when no query runs
  bool is_narrow = false;
  /// Processes that its session waits for while it opens, in vain if one of them goes; none once it is open.
  std::set<uint32_t> opens_with;

  bool is_lost() const { return lost_at != base::kForever; }
  bool leaves() const { return leaves_at != base::kForever; }
};

/// Threads: its world's.
struct ChurnLedger {
  Ledger queries;                    // by index, as of a fixed cluster
  std::vector<QueryOfProcesses> of;  // by index
  std::vector<Fate> fates;           // by process
  /// The session of that process does not open, for one that it waits for has gone.
  bool opens_in_vain(const Fate& fate) const {
    return std::any_of(fate.opens_with.begin(), fate.opens_with.end(), [&](uint32_t process) {
      return fates[process].is_lost() || fates[process].leaves();
    });
  }
  /// When a process has let go of a link, as its other end was drained: by (the one, the other).
  std::map<std::pair<uint32_t, uint32_t>, base::Nanoseconds> let_go;
  std::string story;                        // what was decided, a line each
  std::map<std::string, uint64_t> changes;  // how often what happened
  /// How often what happened, and the number of queries, when what is drawn was over: all runs end
  /// alike (coordinator.h).
  struct Drawn {
    std::map<std::string, uint64_t> changes;
    size_t queries = 0;
  } drawn;
  std::map<std::string, uint64_t> excuses;  // by reason: endings that were failures for it

  void tell(base::Nanoseconds now, const std::string& what) {
    story += fmt::format("  at {:.3f} ms: {}\n", static_cast<double>(now) / 1e6, what);
  }
};

}  // namespace faro::simulation
