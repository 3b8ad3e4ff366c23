// A radix join, with and without lists of hot keys, beside the same rows materialised first, and beside one thread by hand without a
// shuffle: rows of 4 + 4 bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "faro/status.h"
#include "lab/bench/cluster.h"
#include "lab/bench/operators.h"

namespace faro::bench {

/// Each build row has a key of its own, and each probe row the key of one of them: so a worker hands out one pair for each probe row
/// that it joins.
struct JoinJob {
  uint32_t process_count = 4;
  uint32_t workers_per_process = 1;
  uint64_t build_rows = 4'000'000;  ///< of all workers
  uint64_t probe_rows = 4'000'000;
  uint32_t rounds = 7;                 ///< of each contestant, by turns; and one to warm up
  KeyShape shape = KeyShape::uniform;  ///< of probe rows: uniform, zipf, or frequent
  double exponent = 1;                 ///< of zipf

  /// Errors: invalid_argument names field, value and limit.
  Status validate() const;
  uint32_t worker_count() const noexcept { return process_count * workers_per_process; }
};

/// Who joins.
enum class JoinContestant : uint8_t {
  radix_join,     // RadixJoin
  without_lists,  // RadixJoin with JoinSpec::hot_keys off; only where keys are not uniform
  materialised,   // all rows are received first, then partitioned and joined at their worker
  by_hand,  // one thread that has all rows of all workers partitions and joins them; nothing is sent
};
const char* name_of(JoinContestant contestant) noexcept;

/// What one contestant took.
struct JoinFigures {
  JoinContestant contestant = JoinContestant::radix_join;
  RunFigures median;
  std::vector<RunFigures> rounds;
};

/// Runs all contestants by turns, over one session. A hop is one row of either side. Errors: as run_cluster.
Result<std::vector<JoinFigures>> run_join(const JoinJob& job, const FaroOptions& faro);

}  // namespace faro::bench
