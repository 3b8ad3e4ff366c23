// What can carry the rows of the two-stage job, and one run of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/figures.h"
#include "lab/bench/node_report.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// What carries the rows: Faro over each transport, the sockets baselines, and what sets the bar
/// (plain_loop.h, copies.h).
enum class Carrier : uint8_t {
  faro_auto,
  faro_shm,
  faro_tcp,
  faro_verbs,
  sockets,
  sockets_paper,
  plain_loop,
  copies
};

/// "auto", "shm", … "copies".
std::string_view carrier_name(Carrier carrier) noexcept;
/// The names of all, separated by commas.
std::string carrier_names();
/// Errors: invalid_argument names the text and the accepted names.
Result<Carrier> parse_carrier(std::string_view name);
/// Faro in C++ over whichever transport, not a baseline.
constexpr bool is_faro(Carrier carrier) noexcept { return carrier <= Carrier::faro_verbs; }

struct CarrierOptions {
  Config config;                                   ///< of Faro's nodes; transport is set here
  std::vector<std::string> hosts = {"127.0.0.1"};  ///< where processes listen: see FaroOptions
  uint64_t idle_ns = 0;                            ///< see FaroOptions
};

struct CarrierRun {
  std::vector<RunFigures> rounds;         ///< the timed ones
  std::optional<double> connect_seconds;  ///< of Faro
  std::vector<NodeReport> nodes;          ///< of Faro
};

/// One run in processes of its own. Threads: as run_faro, the caller must have no other threads.
/// Blocks: until it has ended. Errors: of the carrier, with its name in front. A wrong result is no error.
Result<CarrierRun> run_carrier(Carrier carrier, const TwoStageJob& job,
                               const CarrierOptions& options, const RunOptions& run);

}  // namespace faro::bench
