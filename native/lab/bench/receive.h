// How fast nodes receive rows of any width: one shuffle of all workers to all, by hash or by broadcast,
// as the data-shuffling-operator paper measures it ("Design and evaluation of an RDMA-aware data
// shuffling operator", §5: receive throughput per node).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "faro/status.h"
#include "lab/bench/cluster.h"

namespace faro::bench {

/// Where a row goes: to the worker of its hash, or to all of them.
enum class Pattern : uint8_t { repartition, broadcast };

/// "repartition" or "broadcast".
std::string_view pattern_name(Pattern pattern) noexcept;
/// Errors: invalid_argument names the text and the accepted names.
Result<Pattern> parse_pattern(std::string_view name);

/// Every byte of every row is written by its sender and checked by its receiver (RowCodec).
struct ReceiveJob {
  uint32_t process_count = 4;
  uint32_t workers_per_process = 1;
  uint64_t rows_per_worker = 1'000'000;  ///< that it sends
  uint32_t row_bytes = 64;               ///< a power of two, 8 … 4096
  Pattern pattern = Pattern::repartition;

  /// Errors: invalid_argument names field, value and limit.
  Status validate() const;

  uint32_t worker_count() const noexcept { return process_count * workers_per_process; }
  uint64_t sent_count() const noexcept { return worker_count() * rows_per_worker; }
  /// How many copies of each row arrive.
  uint32_t copies() const noexcept { return pattern == Pattern::broadcast ? worker_count() : 1; }
  /// Rows that all workers together receive.
  uint64_t received_count() const noexcept { return sent_count() * copies(); }
  /// Bytes of rows that a node receives on average, those of its own workers included.
  uint64_t bytes_per_node() const noexcept { return received_count() * row_bytes / process_count; }
};

/// Runs the job as run_faro runs its own. A hop is one row received.
Result<FaroRun> run_receive(const ReceiveJob& job, const FaroOptions& faro,
                            const RunOptions& options);

}  // namespace faro::bench
