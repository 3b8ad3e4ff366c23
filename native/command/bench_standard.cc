// Workloads of the standard table:
//   4 × 1, 4 × 2    5 M integers per process, shuffled twice; shm, tcp and the tuned sockets
//   baseline the same        by the paper's form of the baseline, with fewer rows
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <vector>

#include "command/bench_parts.h"
#include "command/bench_report.h"
#include "command/exit_code.h"
#include "command/machine.h"
#include "command/text.h"
#include "command/version.h"

namespace faro::command {
namespace {

using bench::Carrier;
using bench::Contestant;
using bench::ContestResult;

constexpr uint32_t kProcesses = 4;
constexpr uint64_t kRowsPerProcess = 5'000'000;
constexpr uint64_t kPaperRowsPerProcess = 100'000;
constexpr uint32_t kLaps = 7;
constexpr uint32_t kPaperLaps = 3;

Result<ContestReport> run_shape(const Config& config, uint32_t workers, ProgressLine& line) {
  Contestant contestant;
  contestant.job.process_count = kProcesses;
  contestant.job.workers_per_process = workers;
  contestant.job.rows_per_process = kRowsPerProcess;
  std::vector<Contestant> contestants;
  for (Carrier carrier : {Carrier::faro_shm, Carrier::faro_tcp, Carrier::sockets}) {
    contestant.carrier = carrier;
    contestants.push_back(contestant);
  }
  ContestReport report;
  report.title = shape_text(contestant.job);
  report.laps = kLaps;
  bench::ContestOptions options;
  options.laps = kLaps;
  options.config = config;
  options.progress = contest_progress(line, contestants, kLaps);
  line.begin(fmt::format("{}: shm, tcp, sockets, {} laps", report.title, kLaps));
  Result<std::vector<ContestResult>> results = run_contest(contestants, options);
  if (!results) return results.status();
  report.results = std::move(results).value();

  contestant.carrier = Carrier::sockets_paper;
  contestant.job.rows_per_process = kPaperRowsPerProcess;
  options.laps = kPaperLaps;
  options.progress = contest_progress(line, {contestant}, kPaperLaps);
  line.begin(fmt::format("{}: sockets as in the paper", report.title));
  Result<std::vector<ContestResult>> paper = run_contest({contestant}, options);
  if (!paper) return paper.status();
  report.results.push_back(std::move(paper.value().front()));
  return report;
}

}  // namespace

int run_standard_bench(const Config& config, bool json) {
  const Machine machine = read_machine();
  std::vector<ContestReport> reports;
  {
    ProgressLine line;
    for (uint32_t workers : {1, 2}) {
      Result<ContestReport> report = run_shape(config, workers, line);
      if (!report) {
        line.clear();
        return bench_error(report.status());
      }
      reports.push_back(std::move(report).value());
    }
  }
  if (json) {
    Json all = origin_json(machine);
    all["contests"] = Json::array();
    for (const ContestReport& report : reports) all["contests"].push_back(contest_json(report));
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print(
        "Two-stage shuffle: {} integers per process go to the worker of their hash, become n*3/2, "
        "and\n"
        "go to the worker of that. Medians of {} interleaved runs; a hop is a row shuffled "
        "once.\n\n"
        "{}\n{}\n{}\n{}\n",
        grouped(kRowsPerProcess), kLaps, contest_table(reports), kPaperNote, machine_text(machine),
        version_text());
  }
  return all_verified(reports) ? kExitOk : kExitFailed;
}

}  // namespace faro::command
