#include "lab/bench/two_stage_java.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <utility>

#include "base/return_if_error.h"
#include "lab/bench/program.h"

namespace faro::bench {
namespace {

std::string java_program() {
  const char* const home = std::getenv("JAVA_HOME");
  return home == nullptr || *home == '\0' ? "java" : std::string(home) + "/bin/java";
}

ProgramRun program_of(const TwoStageJob& job, const JavaOptions& java, const RunOptions& options) {
  ProgramRun run;
  run.time_limit_ns = options.time_limit_ns;
  run.command = {java_program(), "-cp", java.class_path, "io.faro.bench.Main", "two-stage"};
  const auto flag = [&run](std::string_view name, auto&& value) {
    run.command.push_back(fmt::format("--{}", name));
    run.command.push_back(fmt::format("{}", value));
  };
  flag("processes", job.process_count);
  flag("workers", job.workers_per_process);
  flag("rows", job.rows_per_process);
  flag("hash", hash_name(job.hash));
  flag("transport", java.transport);
  flag("level", java.level);
  flag("hosts", fmt::format("{}", fmt::join(java.hosts, ",")));
  // The first round is cold; it counts as one of the warm-up.
  flag("repetitions", options.warmup_rounds + options.timed_rounds - 1);
  for (const SettingInfo& info : Config::table()) {
    if (java.config.source(info.name) != "default") {
      run.environment.emplace_back(info.environment, java.config.get(info.name));
    }
  }
  return run;
}

/// `printed` is the line of Result.java.
Result<JavaRun> read_result(const TwoStageJob& job, const RunOptions& options,
                            const std::string& printed) {
  const nlohmann::json json = nlohmann::json::parse(printed, nullptr, false);
  if (json.is_discarded()) return Status(Code::protocol_error, "not JSON: " + printed);
  try {
    std::vector<RoundTotals> rounds;
    for (const nlohmann::json& round : json.at("rounds")) {
      RoundTotals totals;
      totals.seconds = round.at("seconds").get<double>();
      totals.cpu_seconds = round.at("cpu_seconds").get<double>();
      totals.rows.count = round.at("count").get<uint64_t>();
      totals.rows.checksum = round.at("checksum").get<uint64_t>();
      rounds.push_back(std::move(totals));
    }
    JavaRun run;
    run.rounds = timed_figures(job.expectation(), options, rounds);
    run.connect_seconds = json.at("connect_seconds").get<double>();
    return run;
  } catch (const nlohmann::json::exception& problem) {
    return Status(Code::protocol_error, fmt::format("{}: {}", problem.what(), printed));
  }
}

}  // namespace

Result<JavaRun> run_java(const TwoStageJob& job, const JavaOptions& java,
                         const RunOptions& options) {
  FARO_RETURN_IF_ERROR(job.validate());
  if (job.row_bytes != sizeof(uint64_t)) {
    return Status(Code::invalid_argument, "the benchmark in Java shuffles rows of 8 bytes only");
  }
  FARO_ASSIGN_OR_RETURN(const ProgramOutput ran, run_program(program_of(job, java, options)));
  const ProgramOutput& output = ran;
  if (output.exit_code != 0) {
    return Status(Code::system_error,
                  fmt::format("java ended with code {}: {}", output.exit_code, output.err));
  }
  return read_result(job, options, output.out);
}

}  // namespace faro::bench
