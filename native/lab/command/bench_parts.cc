#include "lab/command/bench_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/return_if_error.h"
#include "command/exit_code.h"
#include "command/settings.h"
#include "lab/bench/carrier.h"

namespace faro::command::lab {

int bench_error(const Status& status) { return report_error("faro-lab bench", status); }

Status check_transports(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const Result<bench::Carrier> carrier = bench::parse_carrier(name);
    if (!carrier) return flag_error("--transport", carrier.status().message());
    if (!is_faro(*carrier)) return flag_error("--transport", "no baseline of sockets runs here");
  }
  return Status::Ok();
}

Result<std::vector<TransportRun>> run_over(
    const std::vector<std::string>& transports, Config config,
    const std::function<Result<bench::FaroRun>(const Config& config)>& run) {
  std::vector<TransportRun> all;
  for (const std::string& name : transports) {
    FARO_RETURN_IF_ERROR(config.set("transport", std::string_view(name), "--transport"));
    Result<bench::FaroRun> ran = run(config);
    if (!ran)
      return Status(ran.status().code(), fmt::format("{}: {}", name, ran.status().message()));
    if (ran->rounds.empty()) continue;
    const bench::RunFigures median = bench::median_of(ran->rounds);
    all.push_back({name, std::move(ran).value(), median});
  }
  return all;
}

int exit_code_of(const std::vector<TransportRun>& runs) {
  const bool verified = std::all_of(runs.begin(), runs.end(),
                                    [](const TransportRun& one) { return one.median.verified(); });
  return verified ? kExitOk : kExitFailed;
}

}  // namespace faro::command::lab
