// Workloads of the standard table:
//   4 × 1, 4 × 2    5 M integers per process, shuffled twice; shm, tcp, the tuned sockets baseline and what
//                   sets the bar (lab/bench/plain_loop.h, lab/bench/copies.h)
//   the same        by the paper's form of the baseline, with fewer rows
//   4 × 1 in Java   the same, in JVMs: the first round of each is cold, the next ones warm it up
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <vector>

#include "base/return_if_error.h"
#include "command/build_json.h"
#include "command/exit_code.h"
#include "command/machine.h"
#include "command/text.h"
#include "command/version.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"

namespace faro::command::lab {
namespace {

using bench::Carrier;
using bench::ContestResult;

constexpr uint32_t kProcesses = 4;
constexpr uint64_t kRowsPerProcess = 5'000'000;
constexpr uint64_t kPaperRowsPerProcess = 100'000;
constexpr uint32_t kLaps = 7;
constexpr uint32_t kPaperLaps = 3;
constexpr uint64_t kJavaPaperRowsPerProcess = 20'000;
// A JVM is started for each lap, and compiles for some rounds.
constexpr uint32_t kJavaLaps = 3;
constexpr uint32_t kJavaWarmupRounds = 4;
constexpr uint32_t kJavaRounds = 3;

/// The contests of one shape: their results are rows of one report.
class Shape {
 public:
  Shape(const BenchInputs& inputs, uint32_t workers, ProgressLine& line)
      : inputs_(inputs), line_(line), job_{kProcesses, workers, kRowsPerProcess} {
    report_.title = shape_text(job_);
    report_.laps = kLaps;
  }

  /// Adds what these bring back. `what` is shown meanwhile.
  Status run(std::initializer_list<Carrier> carriers, uint64_t rows_per_process,
             bench::ContestOptions options, const std::string& what) {
    job_.rows_per_process = rows_per_process;
    std::vector<bench::Contestant> contestants;
    for (Carrier carrier : carriers) contestants.push_back({carrier, job_});
    options.config = inputs_.config;
    options.java_class_path = inputs_.java_class_path;
    options.progress = contest_progress(line_, contestants, options.laps);
    line_.begin(fmt::format("{}: {}", report_.title, what));
    FARO_ASSIGN_OR_RETURN(std::vector<ContestResult> results, run_contest(contestants, options));
    for (ContestResult& result : results) report_.results.push_back(std::move(result));
    return Status::Ok();
  }

  ContestReport take() { return std::move(report_); }

 private:
  const BenchInputs& inputs_;
  ProgressLine& line_;
  bench::TwoStageJob job_;
  ContestReport report_;
};

Result<ContestReport> run_shape(const BenchInputs& inputs, uint32_t workers, ProgressLine& line) {
  Shape shape(inputs, workers, line);
  bench::ContestOptions options;
  options.laps = kLaps;
  FARO_RETURN_IF_ERROR(shape.run({Carrier::faro_shm, Carrier::faro_tcp, Carrier::sockets,
                                  Carrier::plain_loop, Carrier::copies},
                                 kRowsPerProcess, options,
                                 "shm, tcp, sockets, plain loop, copies"));
  options.laps = kPaperLaps;
  FARO_RETURN_IF_ERROR(shape.run({Carrier::sockets_paper}, kPaperRowsPerProcess, options,
                                 "sockets as in the paper"));
  if (workers == 1 && !inputs.java_class_path.empty()) {
    options.laps = kJavaLaps;
    options.warmup_rounds = kJavaWarmupRounds;
    options.timed_rounds = kJavaRounds;
    FARO_RETURN_IF_ERROR(shape.run({Carrier::java_shm, Carrier::java_tcp, Carrier::java_nio},
                                   kRowsPerProcess, options, "Java: shm, tcp, NIO sockets"));
    options = {};
    options.laps = kPaperLaps;
    FARO_RETURN_IF_ERROR(shape.run({Carrier::java_nio_paper}, kJavaPaperRowsPerProcess, options,
                                   "Java: NIO sockets as in the paper"));
  }
  return shape.take();
}

}  // namespace

int run_standard_bench(const BenchInputs& inputs) {
  const Machine machine = read_machine();
  std::vector<ContestReport> reports;
  {
    ProgressLine line;
    for (uint32_t workers : {1, 2}) {
      Result<ContestReport> report = run_shape(inputs, workers, line);
      if (!report) {
        line.clear();
        return bench_error(report.status());
      }
      reports.push_back(std::move(report).value());
    }
  }
  if (inputs.json) {
    Json all = origin_json(machine);
    all["contests"] = Json::array();
    for (const ContestReport& report : reports) all["contests"].push_back(contest_json(report));
    fmt::print("{}\n", json_text(all, true));
  } else {
    fmt::print(
        "Two-stage shuffle: {} integers per process go to the worker of their hash, become n*3/2, "
        "and\n"
        "go to the worker of that. Medians of {} interleaved runs; a hop is a row shuffled once; "
        "cold is\n"
        "the first run of new processes.\n\n"
        "{}\n{}\n{}\n{}\n",
        grouped(kRowsPerProcess), kLaps, contest_table(reports), kPaperNote, machine_text(machine),
        version_text());
  }
  return all_verified(reports) ? kExitOk : kExitFailed;
}

}  // namespace faro::command::lab
