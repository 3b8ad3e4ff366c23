#include "bench/contest.h"

#include <utility>

#include "bench/sockets_baseline.h"
#include "bench/two_stage.h"

namespace faro::bench {
namespace {

constexpr Carrier kCarriers[] = {Carrier::faro_auto,  Carrier::faro_shm, Carrier::faro_tcp,
                                 Carrier::faro_verbs, Carrier::sockets,  Carrier::sockets_paper};

Status run_once(const Contestant& contestant, const ContestOptions& options,
                const RunOptions& run_options, ContestResult& result) {
  std::vector<RunFigures> rounds;
  if (is_faro(contestant.carrier)) {
    FaroOptions faro;
    faro.config = options.config;
    faro.hosts = options.hosts;
    FARO_RETURN_IF_ERROR(faro.config.set("transport", carrier_name(contestant.carrier), "bench"));
    Result<FaroRun> run = run_faro(contestant.job, faro, run_options);
    if (!run) return run.status();
    rounds = std::move(run.value().rounds);
    result.nodes = std::move(run.value().nodes);
    result.connect_seconds.push_back(run.value().connect_seconds);
  } else {
    SocketsOptions sockets;
    sockets.form = contestant.carrier == Carrier::sockets ? SocketsForm::tuned : SocketsForm::paper;
    sockets.addresses = options.hosts;
    Result<std::vector<RunFigures>> run =
        run_sockets_baseline(contestant.job, sockets, run_options);
    if (!run) return run.status();
    rounds = std::move(run).value();
  }
  result.runs.insert(result.runs.end(), rounds.begin(), rounds.end());
  return Status::Ok();
}

}  // namespace

std::string_view carrier_name(Carrier carrier) noexcept {
  switch (carrier) {
    case Carrier::faro_auto:
      return "auto";
    case Carrier::faro_shm:
      return "shm";
    case Carrier::faro_tcp:
      return "tcp";
    case Carrier::faro_verbs:
      return "verbs";
    case Carrier::sockets:
      return "sockets";
    case Carrier::sockets_paper:
      return "sockets-paper";
  }
  return "unknown";
}

Result<Carrier> parse_carrier(std::string_view name) {
  for (Carrier carrier : kCarriers) {
    if (name == carrier_name(carrier)) return carrier;
  }
  return Status(Code::invalid_argument,
                "transport = " + std::string(name) +
                    ": must be auto, shm, tcp, verbs, sockets or sockets-paper");
}

Result<std::vector<ContestResult>> run_contest(const std::vector<Contestant>& contestants,
                                               const ContestOptions& options) {
  std::vector<ContestResult> results(contestants.size());
  const size_t turn_count = options.laps * contestants.size();
  for (size_t turn = 0; turn < turn_count; ++turn) {
    const size_t lap = turn / contestants.size();
    const size_t index = (turn + lap) % contestants.size();
    const Contestant& contestant = contestants[index];
    results[index].contestant = contestant;

    RunOptions run_options;
    run_options.warmup_rounds = options.warmup_rounds;
    run_options.timed_rounds = options.timed_rounds;
    run_options.time_limit_ns = options.lap_limit_ns;
    run_options.progress = [&](const Progress& progress) {
      if (!options.progress) return;
      const double rows = static_cast<double>(contestant.job.row_count());
      const double round = rows > 0 ? static_cast<double>(progress.rows_done) / rows : 0;
      ContestProgress told;
      told.contestant = index;
      told.lap = static_cast<uint32_t>(lap);
      told.fraction = (static_cast<double>(turn) +
                       (progress.round + std::min(round, 1.0)) / progress.round_count) /
                      static_cast<double>(turn_count);
      options.progress(told);
    };
    const Status status = run_once(contestant, options, run_options, results[index]);
    if (!status.ok()) {
      return Status(status.code(), std::string(carrier_name(contestant.carrier)) + ": " +
                                       std::string(status.message()));
    }
  }
  for (ContestResult& result : results) result.median = median_of(result.runs);
  return results;
}

}  // namespace faro::bench
