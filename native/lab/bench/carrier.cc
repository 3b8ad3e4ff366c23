#include "lab/bench/carrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/return_if_error.h"
#include "lab/bench/copies.h"
#include "lab/bench/plain_loop.h"
#include "lab/bench/sockets_baseline.h"
#include "lab/bench/two_stage.h"

namespace faro::bench {
namespace {

struct CarrierName {
  Carrier carrier;
  std::string_view name;
};

constexpr CarrierName kCarriers[] = {
    {Carrier::faro_auto, "auto"},        {Carrier::faro_shm, "shm"},
    {Carrier::faro_tcp, "tcp"},          {Carrier::faro_verbs, "verbs"},
    {Carrier::sockets, "sockets"},       {Carrier::sockets_paper, "sockets-paper"},
    {Carrier::plain_loop, "plain-loop"}, {Carrier::copies, "copies"}};

constexpr const CarrierName& named(Carrier carrier) {
  return kCarriers[static_cast<size_t>(carrier)];
}
static_assert(std::ranges::all_of(kCarriers, [](const CarrierName& one) {
  return &named(one.carrier) == &one;
}));

Result<CarrierRun> run_over_faro(const CarrierName& carrier, const TwoStageJob& job,
                                 const CarrierOptions& options, const RunOptions& run) {
  FaroOptions faro{.config = options.config, .hosts = options.hosts, .idle_ns = options.idle_ns};
  FARO_RETURN_IF_ERROR(faro.config.set("transport", carrier.name, "bench"));
  FARO_ASSIGN_OR_RETURN(FaroRun ran, run_faro(job, faro, run));
  return CarrierRun{std::move(ran.rounds), ran.connect_seconds, std::move(ran.nodes)};
}

Result<std::vector<RunFigures>> run_baseline(Carrier carrier, const TwoStageJob& job,
                                             const CarrierOptions& options, const RunOptions& run) {
  if (carrier == Carrier::plain_loop) return run_plain_loop(job, run);
  if (carrier == Carrier::copies) return run_copies(job, run);
  SocketsOptions sockets;
  sockets.form = carrier == Carrier::sockets ? SocketsForm::tuned : SocketsForm::paper;
  sockets.addresses = options.hosts;
  return run_sockets_baseline(job, sockets, run);
}

Result<CarrierRun> run_any(Carrier carrier, const TwoStageJob& job, const CarrierOptions& options,
                           const RunOptions& run) {
  if (is_faro(carrier)) return run_over_faro(named(carrier), job, options, run);
  FARO_ASSIGN_OR_RETURN(std::vector<RunFigures> rounds, run_baseline(carrier, job, options, run));
  return CarrierRun{std::move(rounds), {}, {}};
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

Result<CarrierRun> run_carrier(Carrier carrier, const TwoStageJob& job,
                               const CarrierOptions& options, const RunOptions& run) {
  Result<CarrierRun> ran = run_any(carrier, job, options, run);
  if (ran) return ran;
  return Status(ran.status().code(),
                fmt::format("{}: {}", carrier_name(carrier), ran.status().message()));
}

}  // namespace faro::bench
