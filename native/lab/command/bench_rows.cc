// `faro-lab bench variable-rows`: rows with a length each, written and read.
// `faro-lab bench run-time-width`: rows one at a time, whose width is given at run time, beside rows of a compiled type.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <string>

#include "command/build_json.h"
#include "command/machine.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/run_time_width.h"
#include "lab/bench/variable_rows.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"
#include "lab/workload/row_loops.h"

namespace faro::command::lab {
namespace {

struct VariableFlags {
  SettingFlags settings;
  bench::VariableRowsJob job;
  std::vector<std::string> transports = {"shm"};
  uint32_t repetitions = 7;
  bool json = false;
};

int run_variable(const VariableFlags& flags) {
  const bench::VariableRowsJob& job = flags.job;
  if (const Status status = check_transports(flags.transports); !status.ok())
    return bench_error(status);
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  bench::RunOptions options;
  options.timed_rounds = flags.repetitions;
  const Result<std::vector<TransportRun>> all = run_over(
      flags.transports, *config,
      [&](const Config& each) { return run_variable_rows(job, {.config = each}, options); });
  if (!all) return bench_error(all.status());
  const auto bytes_per_cpu_second = [&](const TransportRun& one) {
    return static_cast<double>(job.byte_count()) / one.median.cpu_seconds;
  };
  Json json = origin_json(read_machine());
  json["results"] = Json::array();
  Table table("lrrl");
  table.add({"transport", "time", "GB per CPU second", ""});
  for (const TransportRun& one : *all) {
    Json result{{"transport", one.transport}, {"bytes_per_cpu_second", bytes_per_cpu_second(one)}};
    put_totals(result, one.median);
    result["runs"] = runs_json(one.run.rounds);
    json["results"].push_back(std::move(result));
    table.add({one.transport, seconds_text(one.median.seconds),
               fmt::format("{:.2f}", bytes_per_cpu_second(one) * 1e-9), verdict_text(one.median)});
  }
  if (flags.json) {
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print("{}, {} rows of {} bytes with a length each; medians of {}.\n\n{}",
               counted(job.process_count, "process"), grouped(job.row_count()), job.kRowBytes,
               counted(flags.repetitions, "run"), table.text());
  }
  return exit_code_of(*all);
}

struct WidthFlags {
  SettingFlags settings;
  bench::RunTimeWidthJob job;
  bool json = false;
};

constexpr std::array<const char*, bench::kRowWays> kWays = {
    "typed",     "bytes",  "in_place",  "typed_broadcast", "bytes_broadcast",
    "typed_all", "by_key", "to_vector", "by_offsets"};

int run_width(const WidthFlags& flags) {
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  const Result<bench::RunTimeWidthFigures> all = bench::run_run_time_width(flags.job, *config);
  if (!all) return bench_error(all.status());
  Json json = origin_json(read_machine());
  json["row_bytes"] = flags.job.row_bytes;
  json["verified"] = all->verified;
  Table table("lrr");
  table.add({"", "CPU ns to send a row", "to receive one"});
  for (size_t way = 0; way < kWays.size(); ++way) {
    json["ways"][kWays[way]] = {{"send_ns", all->send_ns[way]},
                                {"receive_ns", all->receive_ns[way]}};
    table.add({kWays[way], fmt::format("{:.2f}", all->send_ns[way]),
               fmt::format("{:.2f}", all->receive_ns[way])});
  }
  if (flags.json) {
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print(
        "{} rows of {} bytes, of a worker to itself, many at a time to {}; medians of {}; "
        "{}.\n\n{}",
        grouped(flags.job.rows), flags.job.row_bytes, counted(flags.job.receivers, "worker"),
        counted(flags.job.rounds, "run"),
        all->verified ? "verified" : "WRONG: not every row came once and whole", table.text());
  }
  return all->verified ? kExitOk : kExitFailed;
}

}  // namespace

void add_row_commands(CLI::App& bench, int& exit_code) {
  auto [variable, job] = add_subcommand(bench, exit_code, "variable-rows",
                                        "Rows with a length each, written and read", run_variable);
  variable.option_defaults()->always_capture_default();
  add_number(variable, "--rows", job.job.rows_per_worker, "Rows that each worker sends", 1,
             uint64_t{1} << 36);
  add_repetitions_flag(variable, job.repetitions);
  add_transports_flag(variable, job.transports, "auto, shm, tcp and verbs");
  variable.option_defaults()->always_capture_default(false);
  job.settings.add_to(variable);
  variable.add_flag("--json", job.json, "Print JSON");

  auto [width, flags] = add_subcommand(
      bench, exit_code, "run-time-width",
      "Rows whose width is given at run time, beside rows of a compiled type", run_width);
  width.option_defaults()->always_capture_default();
  add_row_bytes_flag(width, flags.job.row_bytes, workload::kRowWidths);
  add_number(width, "--rows", flags.job.rows, "Rows of each run", 1, uint64_t{1} << 36);
  add_number(width, "--receivers", flags.job.receivers, "Workers that get rows sent many at a time",
             1, 64);
  add_repetitions_flag(width, flags.job.rounds);
  width.option_defaults()->always_capture_default(false);
  flags.settings.add_to(width);
  width.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command::lab
