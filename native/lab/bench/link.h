// The bandwidth of one lane: frames from one worker to a worker of another process, as many as its ring
// takes, the way `ib_write_bw` of perftest measures the device below.
#pragma once

#include <cstdint>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/cluster.h"
#include "lab/bench/round_worker.h"

namespace faro::bench {

/// Each frame holds one row, which fills it. The sender writes the row's number into its first and its
/// last word, in place, and nothing between, and the receiver checks both: so that what is measured is
/// what moves frames, and yet every frame has to arrive whole, once and in order.
struct LinkJob {
  static constexpr uint32_t kProcesses = 2;  ///< process 0 sends, 1 receives; a worker each

  uint32_t frame_bytes = 64 * 1024;  ///< header included; a multiple of 64
  uint64_t frame_count = 5000;       ///< per round, as many as ib_write_bw writes

  /// Errors: invalid_argument.
  Status validate() const;
  uint32_t row_bytes() const noexcept;
  uint64_t payload_bytes() const noexcept { return frame_count * frame_bytes; }
};

/// `config` with rings that take several frames, a frame each transfer, unless it says otherwise
/// itself. Errors: config_invalid if its rings are too small for such a frame.
Result<Config> link_config(const LinkJob& job, const Config& config);

/// For any number of rounds, on one host or two.
ClusterJob link_job(const LinkJob& job);

/// Runs the job as run_faro runs its own.
Result<FaroRun> run_link(const LinkJob& job, const FaroOptions& faro, const RunOptions& options);

}  // namespace faro::bench
