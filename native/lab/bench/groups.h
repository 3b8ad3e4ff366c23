// What it costs to send rows to groups of receivers (ShuffleSpec::groups): to one group, to two that share a receiver or none,
// rows alternating, and without groups by a broadcast of each row. Each row goes to two receivers. One thread has all workers, so that
// its clock tells what each side takes; all ways take turns within one run.
#pragma once

#include <array>
#include <cstdint>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::bench {

enum class GroupWay : uint8_t {
  one_group,  ///< receivers 0 and 1
  overlap,    ///< receivers 0 and 1, and 1 and 2
  apart,      ///< receivers 0 and 1, and 2 and 3
  broadcast,  ///< RowSender::broadcast_all of each row, to receivers 0 and 1
};
inline constexpr size_t kGroupWays = 4;

struct GroupsJob {
  uint32_t row_bytes = 16;  ///< of workload::kRowWidths
  uint64_t rows = 1'000'000;
  uint32_t rounds = 7;  ///< of every way
};

struct GroupsFigures {
  struct Way {
    double send_ns = 0;     ///< median of CPU time per row and copy
    double receive_ns = 0;  ///< the same at the receivers
    double rows_per_frame = 0;
  };
  std::array<Way, kGroupWays> ways{};
  bool verified = true;  ///< every row came to both, once and whole

  const Way& of(GroupWay way) const noexcept { return ways[static_cast<size_t>(way)]; }
};

/// Opens a session of one node with the settings of `config`. Blocks: until all rounds have ended.
/// Errors: invalid_argument for a width that is not compiled; of the session. A wrong result is no error: see `verified`.
Result<GroupsFigures> run_groups(const GroupsJob& job, const Config& config);

}  // namespace faro::bench
