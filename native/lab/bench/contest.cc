#include "lab/bench/contest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/return_if_error.h"
#include "lab/bench/copies.h"
#include "lab/bench/plain_loop.h"
#include "lab/bench/sockets_baseline.h"
#include "lab/bench/two_stage.h"
#include "lab/bench/two_stage_java.h"

namespace faro::bench {
namespace {

struct CarrierName {
  Carrier carrier;
  std::string_view name;
  // Carriers in Java have these two, as io.faro.bench names them.
  std::string_view transport = {};
  std::string_view level = "many";
};

constexpr CarrierName kCarriers[] = {{Carrier::faro_auto, "auto"},
                                     {Carrier::faro_shm, "shm"},
                                     {Carrier::faro_tcp, "tcp"},
                                     {Carrier::faro_verbs, "verbs"},
                                     {Carrier::sockets, "sockets"},
                                     {Carrier::sockets_paper, "sockets-paper"},
                                     {Carrier::plain_loop, "plain-loop"},
                                     {Carrier::copies, "copies"},
                                     {Carrier::java_shm, "java-shm", "shm"},
                                     {Carrier::java_shm_one, "java-shm-one", "shm", "one"},
                                     {Carrier::java_shm_codec, "java-shm-codec", "shm", "codec"},
                                     {Carrier::java_tcp, "java-tcp", "tcp"},
                                     {Carrier::java_verbs, "java-verbs", "verbs"},
                                     {Carrier::java_nio, "java-nio", "nio"},
                                     {Carrier::java_nio_paper, "java-nio-paper", "nio-paper"}};

constexpr const CarrierName& named(Carrier carrier) {
  return kCarriers[static_cast<size_t>(carrier)];
}
static_assert(std::ranges::all_of(kCarriers, [](const CarrierName& one) {
  return &named(one.carrier) == &one;
}));

/// One lap of one contestant: all its rounds, connecting times and nodes.
Result<std::vector<RunFigures>> run_lap(const Contestant& contestant, const ContestOptions& options,
                                        const RunOptions& run_options, ContestResult& result) {
  const CarrierName& carrier = named(contestant.carrier);
  if (is_java(contestant.carrier)) {
    const JavaOptions java{.class_path = options.java_class_path,
                           .transport = std::string(carrier.transport),
                           .level = std::string(carrier.level),
                           .hosts = options.hosts,
                           .config = options.config};
    FARO_ASSIGN_OR_RETURN(JavaRun run, run_java(contestant.job, java, run_options));
    result.connect_seconds.push_back(run.connect_seconds);
    return std::move(run.rounds);
  }
  if (is_faro(contestant.carrier)) {
    FaroOptions faro{.config = options.config, .hosts = options.hosts};
    FARO_RETURN_IF_ERROR(faro.config.set("transport", carrier.name, "bench"));
    FARO_ASSIGN_OR_RETURN(FaroRun run, run_faro(contestant.job, faro, run_options));
    result.nodes = std::move(run.nodes);
    result.connect_seconds.push_back(run.connect_seconds);
    return std::move(run.rounds);
  }
  if (contestant.carrier == Carrier::plain_loop) return run_plain_loop(contestant.job, run_options);
  if (contestant.carrier == Carrier::copies) return run_copies(contestant.job, run_options);
  SocketsOptions sockets;
  sockets.form = contestant.carrier == Carrier::sockets ? SocketsForm::tuned : SocketsForm::paper;
  sockets.addresses = options.hosts;
  return run_sockets_baseline(contestant.job, sockets, run_options);
}

}  // namespace

std::string_view carrier_name(Carrier carrier) noexcept { return named(carrier).name; }

std::string carrier_names() {
  return fmt::format("{}", fmt::join(kCarriers | std::views::transform(&CarrierName::name), ", "));
}

Result<Carrier> parse_carrier(std::string_view name) {
  for (const CarrierName& one : kCarriers) {
    if (name == one.name) return one.carrier;
  }
  return Status(Code::invalid_argument,
                "transport = " + std::string(name) + ": must be one of " + carrier_names());
}

Result<std::vector<ContestResult>> run_contest(const std::vector<Contestant>& contestants,
                                               const ContestOptions& options) {
  std::vector<ContestResult> results(contestants.size());
  std::vector<std::vector<RunFigures>> cold(contestants.size());
  const size_t turn_count = options.laps * contestants.size();
  for (size_t turn = 0; turn < turn_count; ++turn) {
    const size_t lap = turn / contestants.size();
    const size_t index = (turn + lap) % contestants.size();
    const Contestant& contestant = contestants[index];
    results[index].contestant = contestant;

    RunOptions run_options;
    run_options.warmup_rounds = 0;  // the rounds are told apart below
    run_options.timed_rounds = options.warmup_rounds + options.timed_rounds;
    run_options.time_limit_ns = options.lap_limit_ns;
    run_options.progress = [&](const Progress& progress) {
      if (!options.progress) return;
      const double rows = static_cast<double>(contestant.job.row_count());
      const double round = rows > 0 ? static_cast<double>(progress.rows_done) / rows : 0;
      const double turns_done = static_cast<double>(turn) +
                                (progress.round + std::min(round, 1.0)) / progress.round_count;
      options.progress(
          {index, static_cast<uint32_t>(lap), turns_done / static_cast<double>(turn_count)});
    };
    const Result<std::vector<RunFigures>> rounds =
        run_lap(contestant, options, run_options, results[index]);
    if (!rounds) {
      return Status(rounds.status().code(), std::string(carrier_name(contestant.carrier)) + ": " +
                                                std::string(rounds.status().message()));
    }
    if (options.warmup_rounds > 0) cold[index].push_back(rounds.value().front());
    results[index].runs.insert(results[index].runs.end(),
                               rounds.value().begin() + options.warmup_rounds,
                               rounds.value().end());
  }
  for (size_t index = 0; index < results.size(); ++index) {
    results[index].median = median_of(results[index].runs);
    if (!cold[index].empty()) results[index].cold = median_of(cold[index]);
  }
  return results;
}

}  // namespace faro::bench
