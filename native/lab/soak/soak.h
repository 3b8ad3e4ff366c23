// A soak: clusters of real processes, one after the other, with queries of random shape, while their
// nodes are paused, stopped and killed, and return; or join and leave all the time. Every row is compared; every loss has to be
// told in time, by its name, to everybody whom it concerns and to nobody else; and nothing may grow.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "lab/soak/plan.h"
#include "lab/soak/usage.h"

namespace faro::soak {

/// What a soak goes by: its processes are real.
inline base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

/// From a time limit's end, when a loss has to be known at the latest.
inline constexpr double kTellingSeconds = 1;

/// Losses of one kind.
struct Losses {
  uint64_t count = 0;
  uint64_t told = 0;  ///< reports of survivors, one from each that a loss concerned
  /// From the fault to the last of them; from the beginning of the query where that was later.
  double longest_seconds = 0;
};

/// What a soak has done until now.
struct Progress {
  double seconds = 0;
  uint64_t clusters = 0;
  uint64_t queries = 0;    ///< those that failed included
  uint64_t failed = 0;     ///< as they had to, of a loss
  uint64_t cancelled = 0;  ///< as the plan said
  uint64_t rows = 0;       ///< received and compared
  uint64_t paused = 0;
  Losses stopped, killed;
  uint64_t returned = 0;  ///< into a running cluster, of those
  uint64_t joined = 0, drained = 0;
  Losses removed;             ///< while they lived, by all others
  uint64_t quiet_looks = 0;   ///< between two clusters: no session is open, nothing may be left
  Usage controller, witness;  ///< at the last of them
  uint64_t witness_heap_bytes = 0;
};

struct Report {
  Progress total;
  /// What was broken, and how to repeat it; empty if nothing was.
  std::string violation;
  /// There were enough looks to tell how memory went.
  bool memory_is_known = false;
  /// How it went, in the second and in the last quarter; or that this is not known.
  std::string memory;
};

/// Runs until the time is over, the kills are done, or something is broken. `tell`: called after every
/// cluster.
///
/// A soak is a violation if a row is wrong; a query ends in another way than its plan and the faults say;
/// a loss is told later than liveness.timeout_ms + kTellingSeconds after the fault, or without the name;
/// a node hangs or ends by itself; between two clusters a process has more descriptors or threads than
/// at its first such look, or a file is left; or what the witness or the controller has resident, by the
/// median of the last quarter of the looks, is more than 1 MiB above that of the second quarter, or the
/// heap of the witness more than 64 KiB; or, in a session whose nodes have come and gone, the witness alone has more than it had
/// alone before.
///
/// Threads: one without siblings, as it forks. Blocks: till then. Errors: in the report.
Report run_soak(const Options& options, const std::function<void(const Progress&)>& tell);

}  // namespace faro::soak
