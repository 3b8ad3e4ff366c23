// `faro-lab bench receive`: how fast nodes receive rows of a width, repartitioned or broadcast, on one host.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "command/build_json.h"
#include "command/machine.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/receive.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"

namespace faro::command::lab {
namespace {

using bench::ReceiveJob;

struct Flags {
  SettingFlags settings;
  ReceiveJob job;
  std::string pattern = "repartition";
  std::vector<std::string> transports = {"shm", "tcp"};
  uint32_t repetitions = 5;
  bool json = false;
};

double bytes_per_second(const ReceiveJob& job, const TransportRun& one) {
  return static_cast<double>(job.bytes_per_node()) / one.median.seconds;
}

Result<ReceiveJob> read_job(const Flags& flags) {
  ReceiveJob job = flags.job;
  const Result<bench::Pattern> pattern = bench::parse_pattern(flags.pattern);
  if (!pattern) return flag_error("--pattern", pattern.status().message());
  job.pattern = *pattern;
  if (const Status status = job.validate(); !status.ok()) {
    return flag_error("--row-bytes", status.message());
  }
  FARO_RETURN_IF_ERROR(check_transports(flags.transports));
  return job;
}

std::string table_of(const ReceiveJob& job, const std::vector<TransportRun>& all) {
  Table table("lrrrl");
  table.add({"transport", "time", "GB/s per node", "CPU ns/row", ""});
  for (const TransportRun& one : all) {
    table.add({one.transport, seconds_text(one.median.seconds),
               fmt::format("{:.3f}", bytes_per_second(job, one) * 1e-9),
               fmt::format("{:.2f}", one.median.cpu_ns_per_hop()), verdict_text(one.median)});
  }
  return table.text();
}

Json json_of(const ReceiveJob& job, const std::vector<TransportRun>& all) {
  Json json = origin_json(read_machine());
  json["processes"] = job.process_count;
  json["workers"] = job.workers_per_process;
  json["rows_per_worker"] = job.rows_per_worker;
  json["row_bytes"] = job.row_bytes;
  json["pattern"] = pattern_name(job.pattern);
  json["results"] = Json::array();
  for (const TransportRun& one : all) {
    Json result;
    result["transport"] = one.transport;
    result["bytes_per_second_per_node"] = bytes_per_second(job, one);
    put_totals(result, one.median);
    result["runs"] = runs_json(one.run.rounds);
    json["results"].push_back(std::move(result));
  }
  return json;
}

int run(const Flags& flags) {
  const Result<ReceiveJob> job = read_job(flags);
  if (!job) return bench_error(job.status());
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  say_what_auto_leaves_out(flags.transports, *config);
  bench::RunOptions options;
  options.timed_rounds = flags.repetitions;
  const Result<std::vector<TransportRun>> all =
      run_over(flags.transports, *config,
               [&](const Config& each) { return run_receive(*job, {.config = each}, options); });
  if (!all) return bench_error(all.status());
  if (flags.json) {
    fmt::print("{}\n", json_text(json_of(*job, *all), true));
  } else {
    fmt::print("{} × {}, {} rows of {} of each worker, {}; medians of {}.\n\n{}",
               counted(job->process_count, "process"), counted(job->workers_per_process, "worker"),
               grouped(job->rows_per_worker), exact_bytes_text(job->row_bytes),
               pattern_name(job->pattern), counted(flags.repetitions, "run"), table_of(*job, *all));
  }
  return exit_code_of(*all);
}

}  // namespace

void add_receive_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] =
      add_subcommand(bench, exit_code, "receive",
                     "How fast nodes receive rows of a width, repartitioned or broadcast", run);
  ReceiveJob& job = flags.job;
  command.option_defaults()->always_capture_default();
  add_number(command, "--processes", job.process_count, "Each a node", 1, 4096);
  add_number(command, "--workers", job.workers_per_process, "Per process", 1, 4096);
  add_number(command, "--rows", job.rows_per_worker, "Rows that each worker sends", 0,
             uint64_t{1} << 36);
  command.add_option("--row-bytes", job.row_bytes, "A power of two, 8 to 4096")->type_name("N");
  command
      .add_option("--pattern", flags.pattern,
                  "repartition (each row to the worker of its hash) or broadcast (to all)")
      ->type_name("NAME");
  add_repetitions_flag(command, flags.repetitions);
  add_transports_flag(command, flags.transports, "auto, shm, tcp and verbs");
  command.option_defaults()->always_capture_default(false);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command::lab
