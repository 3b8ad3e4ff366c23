// An aggregation whose table is chosen by itself, beside every fixed table and beside aggregation by a tree: rows of 4 + 4 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faro/status.h"
#include "lab/bench/cluster.h"

namespace faro::bench {

/// How keys are drawn.
enum class KeyShape : uint8_t {
  uniform,
  zipf,      // by Zipf's law, with AggregationJob::exponent
  frequent,  // one of them has half of all rows
  sorted,    // at each worker, as a sorted table is read
  changing,  // uniform over all groups, and from the middle on over 1024
};
/// Errors: invalid_argument names the text and the accepted names.
Result<KeyShape> parse_key_shape(std::string_view name);
const char* name_of(KeyShape shape) noexcept;
inline constexpr const char* kKeyShapes = "uniform, zipf, frequent, sorted, changing";

struct AggregationJob {
  uint32_t process_count = 4;
  uint32_t workers_per_process = 1;
  uint64_t rows = 4'000'000;  ///< of all workers
  uint64_t groups = 16;       ///< of which keys are drawn
  KeyShape shape = KeyShape::uniform;
  double exponent = 1.0;
  uint32_t rounds = 7;  ///< of each contestant, by turns; and one to warm up

  /// Errors: invalid_argument names field, value and limit.
  Status validate() const;
  uint32_t worker_count() const noexcept { return process_count * workers_per_process; }
  uint64_t rows_per_worker() const noexcept { return rows / worker_count(); }
};

/// Who aggregates.
struct AggregationContestant {
  enum class Way : uint8_t {
    automatic,
    fixed,  // a table of that size; 0: every row is sent
    tree,  // all rows at their worker, then pairs of workers: "Dist. AGG" of The End of Slow Networks, section 5
  };
  Way way = Way::automatic;
  uint32_t table_states = 0;

  std::string name() const;
};

/// Automatic first, then the others.
std::vector<AggregationContestant> aggregation_contestants();

/// What one contestant took.
struct AggregationFigures {
  AggregationContestant contestant;
  RunFigures median;
  std::vector<RunFigures> rounds;
};

/// Runs all contestants by turns, over one session. A hop is one row. Errors: as run_cluster.
Result<std::vector<AggregationFigures>> run_aggregation(
    const AggregationJob& job, const std::vector<AggregationContestant>& contestants,
    const FaroOptions& faro);

/// The automatic contestant's CPU time over that of the best other one, which one half of the rounds chooses and the other half
/// measures.
double times_best(const std::vector<AggregationFigures>& all);

}  // namespace faro::bench
