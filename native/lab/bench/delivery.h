// What delivery to nodes is worth (Delivery::node and replicate): one shuffle whose rows any worker of a node may take, or all of
// them, beside one whose rows each have their worker, or beside itself without what disturbs it. All ways of a job take turns within
// one run.
//
//   skewed     three quarters of all rows have one key; delivery to workers, each with lanes of its own, beside delivery to nodes
//   absent     by delivery to nodes: all workers receive; one sends its rows, and then makes no call before the others of its node
//              have received all
//   holding    by delivery to nodes: one worker takes no part; it receives, and holds every batch, asleep, for a while
//   wide       rows of 64 KiB by delivery to nodes, which are copied in and copied out; beside both copies alone, by as many threads,
//              each of which copies out what another one has copied in, or what it has itself
//   broadcast  rows of 64 bytes of each worker to all workers: delivery to workers, each with lanes of its own, beside
//              Delivery::replicate, with rings of the same size, and with as many times larger ones as there are fewer
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/figures.h"

namespace faro::bench {

enum class DeliveryCase : uint8_t { skewed, absent, holding, wide, broadcast };

inline constexpr const char* kDeliveryCases = "skewed, absent, holding, wide or broadcast";
/// Errors: invalid_argument names the text and the accepted names.
Result<DeliveryCase> parse_delivery_case(std::string_view name);

struct DeliveryJob {
  static constexpr uint32_t kWideRowBytes = 64 * 1024;
  static constexpr uint32_t kBroadcastRowBytes = 64;

  DeliveryCase which = DeliveryCase::skewed;
  uint32_t process_count = 2;
  uint32_t workers_per_process = 4;
  uint64_t rows = 2'000'000;  ///< that all workers send
  /// What a receiver does with a row: this many steps of a loop of four instructions, of which each waits for the one before. Not in
  /// the wide case, nor in broadcasts.
  uint32_t steps_per_row = 700;
  uint64_t hold_ns = 20'000'000;  ///< in the holding case
  uint32_t rounds = 5;            ///< of each way

  /// Errors: invalid_argument names field, value and limit.
  Status validate() const;
  uint32_t worker_count() const noexcept { return process_count * workers_per_process; }
  uint32_t row_bytes() const noexcept;
  /// How many workers get each row.
  uint32_t copies() const noexcept { return which == DeliveryCase::broadcast ? worker_count() : 1; }
};

/// What one way took.
struct DeliveryWay {
  std::string name;
  std::vector<RunFigures> rounds;
  RunFigures median;
  /// What nodes have sent to each other in the last round, and in one before that warms up.
  uint64_t bytes_to_others = 0;
};

/// The ways of the job's case, the one that others are compared with first. `config`: settings of every node but lane.ends, which
/// each way has its own of. Threads, Errors: as run_cluster. A wrong result is no error: see RunFigures::verified.
Result<std::vector<DeliveryWay>> run_delivery(const DeliveryJob& job, const Config& config);

/// The time below which a run cannot come on that many processors, by its CPU times: also where others use these, too.
double least_seconds(const RunFigures& run, uint32_t processors) noexcept;

/// How many times the mean the unit gets that gets most of `rows` rows, of which a part has one key and each of the others a key of
/// its own, if each row belongs to the unit of its hash.
double most_loaded(uint64_t rows, double part_of_one_key, uint32_t units);

}  // namespace faro::bench
