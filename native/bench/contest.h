// Runs several contestants against each other on this host: interleaved, so that what disturbs the
// machine disturbs all of them, and over several laps, of which medians are taken.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/figures.h"
#include "bench/node_report.h"
#include "bench/two_stage_job.h"
#include "faro/config.h"
#include "faro/status.h"

namespace faro::bench {

/// What carries the rows.
enum class Carrier : uint8_t { faro_auto, faro_shm, faro_tcp, faro_verbs, sockets, sockets_paper };

/// "auto", "shm", "tcp", "verbs", "sockets", "sockets-paper".
std::string_view carrier_name(Carrier carrier) noexcept;
/// Errors: invalid_argument names the text and the accepted names.
Result<Carrier> parse_carrier(std::string_view name);
/// Faro over whichever transport, not a baseline.
constexpr bool is_faro(Carrier carrier) noexcept { return carrier <= Carrier::faro_verbs; }

struct Contestant {
  Carrier carrier = Carrier::faro_auto;
  TwoStageJob job;
};

struct ContestProgress {
  size_t contestant = 0;  ///< its index
  uint32_t lap = 0;
  double fraction = 0;  ///< of the whole contest, 0 … 1
};

struct ContestOptions {
  /// How often each contestant is started anew; in each lap they run in another order.
  uint32_t laps = 7;
  uint32_t warmup_rounds = 1;                      ///< per lap, not reported
  uint32_t timed_rounds = 1;                       ///< per lap
  Config config;                                   ///< of Faro's nodes; transport is set here
  std::vector<std::string> hosts = {"127.0.0.1"};  ///< where processes listen: see ClusterOptions
  uint64_t lap_limit_ns = 120'000'000'000;
  std::function<void(const ContestProgress&)> progress;
};

struct ContestResult {
  Contestant contestant;
  RunFigures median;
  std::vector<RunFigures> runs;
  std::vector<double> connect_seconds;  ///< one per lap; none for the sockets
  std::vector<NodeReport> nodes;        ///< of the last lap; none for the sockets
};

/// Threads: as run_faro, the caller must have no other threads. Blocks: until all have run.
/// Errors: of the first contestant that fails, with its name in front. A wrong result is no error.
Result<std::vector<ContestResult>> run_contest(const std::vector<Contestant>& contestants,
                                               const ContestOptions& options);

}  // namespace faro::bench
