// What it costs to send rows whose width is known only at run time, one at a time or many, beside rows of a compiled type; and to
// receive them. One thread has all workers, so that its clock tells what each side takes; all ways take turns within one run.
#pragma once

#include <array>
#include <cstdint>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::bench {

/// How the rows are sent. Those behind each typed way are compared with it.
enum class RowWay : uint8_t {
  typed,
  bytes,
  in_place,
  typed_broadcast,
  bytes_broadcast,
  typed_all,   ///< RowSender::send_all
  by_key,      ///< ShuffleSender::send_all
  to_vector,   ///< ShuffleSender::send_rows; who computes the receivers is not timed
  by_offsets,  ///< ShuffleSender::send_rows of a shuffle whose rows have a length each
};
inline constexpr size_t kRowWays = 9;

struct RunTimeWidthJob {
  uint32_t row_bytes = 16;  ///< of workload::kRowWidths
  uint64_t rows = 1'000'000;
  uint32_t receivers = 4;  ///< of rows that are sent many at a time; others go to the sender itself
  uint32_t rounds = 7;     ///< of every way
};

struct RunTimeWidthFigures {
  /// Medians of CPU time per row.
  std::array<double, kRowWays> send_ns{};
  std::array<double, kRowWays> receive_ns{};
  bool verified = true;  ///< every row came, once and whole

  double sent(RowWay way) const noexcept { return send_ns[static_cast<size_t>(way)]; }
  double received(RowWay way) const noexcept { return receive_ns[static_cast<size_t>(way)]; }
};

/// Opens a session of one node with the settings of `config`. Blocks: until all rounds have ended.
/// Errors: invalid_argument for a width that is not compiled; of the session. A wrong result is no error: see `verified`.
Result<RunTimeWidthFigures> run_run_time_width(const RunTimeWidthJob& job, const Config& config);

}  // namespace faro::bench
