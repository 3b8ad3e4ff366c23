// Runs several contestants against each other on this host: interleaved, so that what disturbs the
// machine disturbs all of them, and over several laps, of which medians are taken.
#pragma once

#include <cstdint>
#include <functional>
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

/// What carries the rows. Behind Faro over each transport the sockets baselines and what sets the bar
/// (plain_loop.h, copies.h), behind those what runs in JVMs: Faro with rows sent many at
/// a time, one by one, or as objects by a codec; and the sockets middleware in Java NIO.
enum class Carrier : uint8_t {
  faro_auto,
  faro_shm,
  faro_tcp,
  faro_verbs,
  sockets,
  sockets_paper,
  plain_loop,
  copies,
  java_shm,
  java_shm_one,
  java_shm_codec,
  java_tcp,
  java_verbs,
  java_nio,
  java_nio_paper
};

/// "auto", "shm", … "java-shm", … "java-nio-paper".
std::string_view carrier_name(Carrier carrier) noexcept;
/// The names of all, separated by commas.
std::string carrier_names();
/// Errors: invalid_argument names the text and the accepted names.
Result<Carrier> parse_carrier(std::string_view name);
/// Faro in C++ over whichever transport, not a baseline.
constexpr bool is_faro(Carrier carrier) noexcept { return carrier <= Carrier::faro_verbs; }
/// In JVMs.
constexpr bool is_java(Carrier carrier) noexcept { return carrier >= Carrier::java_shm; }

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
  uint32_t warmup_rounds = 1;                      ///< per lap; of these only the first is reported
  uint32_t timed_rounds = 1;                       ///< per lap
  Config config;                                   ///< of Faro's nodes; transport is set here
  std::vector<std::string> hosts = {"127.0.0.1"};  ///< where processes listen: see FaroOptions
  std::string java_class_path;                     ///< see JavaOptions
  uint64_t lap_limit_ns = 120'000'000'000;
  std::function<void(const ContestProgress&)> progress;
};

struct ContestResult {
  Contestant contestant;
  RunFigures median;
  std::vector<RunFigures> runs;
  std::optional<RunFigures> cold;       ///< median of the laps' first rounds, if they are a warm-up
  std::vector<double> connect_seconds;  ///< one per lap; none for the sockets
  std::vector<NodeReport> nodes;        ///< of the last lap; only of Faro in C++
};

/// Threads: as run_faro, the caller must have no other threads. Blocks: until all have run.
/// Errors: of the first contestant that fails, with its name in front. A wrong result is no error.
Result<std::vector<ContestResult>> run_contest(const std::vector<Contestant>& contestants,
                                               const ContestOptions& options);

}  // namespace faro::bench
