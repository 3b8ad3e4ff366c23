// `faro-lab bench send-first`: a program that sends all its rows before it receives any, beside Worker::exchange.
// `faro-lab bench pipeline`: three nodes, the last one slow: how much its rows pile up in overflow.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "command/build_json.h"
#include "command/machine.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/pipeline.h"
#include "lab/bench/send_first.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"

namespace faro::command::lab {
namespace {

struct SendFirstFlags {
  SettingFlags settings;
  bench::SendFirstJob job;
  std::vector<std::string> transports = {"shm", "tcp"};
  bool json = false;
};

/// The most that any node had in overflow.
uint64_t most(const std::vector<bench::NodeReport>& nodes, uint64_t SessionMetrics::*bytes) {
  uint64_t most = 0;
  for (const bench::NodeReport& node : nodes) most = std::max(most, node.metrics.*bytes);
  return most;
}

Json way_json(const bench::RunFigures& median, const std::vector<bench::RunFigures>& rounds) {
  Json json{{"seconds", median.seconds},
            {"cpu_seconds", median.cpu_seconds},
            {"rows_per_second", median.rows_per_second()}};
  put_totals(json, median);
  json["runs"] = runs_json(rounds);
  return json;
}

int run_send_first(const SendFirstFlags& flags) {
  const bench::SendFirstJob& job = flags.job;
  if (const Status status = job.validate(); !status.ok()) return bench_error(status);
  if (const Status status = check_transports(flags.transports); !status.ok())
    return bench_error(status);
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  Json json = origin_json(read_machine());
  json["processes"] = job.process_count;
  json["workers"] = job.workers_per_process;
  json["row_bytes"] = job.row_bytes;
  json["rows_per_worker"] = job.rows_per_worker();
  json["results"] = Json::array();
  Table table("lrrrrrl");
  table.add({"transport", "exchange", "sends first", "times", "overflow", "its file", ""});
  bool verified = true;
  for (const std::string& transport : flags.transports) {
    Config own = *config;
    if (const Status status = own.set("transport", transport); !status.ok())
      return bench_error(status);
    const Result<bench::SendFirstRun> run = run_send_first(job, {.config = own});
    if (!run) return bench_error(run.status());
    const uint64_t memory = most(run->nodes, &SessionMetrics::overflow_memory_peak_bytes);
    const uint64_t file = most(run->nodes, &SessionMetrics::overflow_file_peak_bytes);
    json["results"].push_back({{"transport", transport},
                               {"exchange", way_json(run->together, run->rounds_together)},
                               {"afterwards", way_json(run->afterwards, run->rounds_afterwards)},
                               {"times", run->times()},
                               {"overflow_memory_peak_bytes", memory},
                               {"overflow_file_peak_bytes", file}});
    const bool together = run->together.verified();
    table.add({transport, seconds_text(run->together.seconds),
               seconds_text(run->afterwards.seconds), fmt::format("{:.2f}", run->times()),
               bytes_text(memory), bytes_text(file),
               verdict_text(together ? run->afterwards : run->together)});
    verified = verified && together && run->afterwards.verified();
  }
  if (flags.json) {
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print("{} × {}, {} rows of {} of each worker; medians of {}, by turns.\n\n{}",
               counted(job.process_count, "process"), counted(job.workers_per_process, "worker"),
               grouped(job.rows_per_worker()), exact_bytes_text(job.row_bytes),
               counted(job.rounds, "run"), table.text());
  }
  return verified ? kExitOk : kExitFailed;
}

struct PipelineFlags {
  SettingFlags settings;
  bench::PipelineJob job;
  std::vector<std::string> transports = {"shm", "tcp"};
  uint32_t repetitions = 3;
  bool json = false;
};

int run_pipeline(const PipelineFlags& flags) {
  const bench::PipelineJob& job = flags.job;
  if (const Status status = check_transports(flags.transports); !status.ok())
    return bench_error(status);
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  const Result<std::vector<TransportRun>> all =
      run_over(flags.transports, *config, [&](const Config& each) {
        return bench::run_pipeline(job, {.config = each}, flags.repetitions);
      });
  if (!all) return bench_error(all.status());
  Json json = origin_json(read_machine());
  json["rows"] = job.rows;
  json["ns_per_row"] = job.ns_per_row;
  json["unpolled_rows"] = job.unpolled ? bench::PipelineJob::kUnpolledRows : 0;
  json["results"] = Json::array();
  Table table("lrrrl");
  table.add({"transport", "time", "CPU ns per row and hop", "rows spilled", ""});
  for (const TransportRun& one : *all) {
    const double spilled = static_cast<double>(bench::rows_spilled(one.run.nodes)) /
                           static_cast<double>(job.hop_count() * flags.repetitions);
    Json result{{"transport", one.transport},
                {"seconds", one.median.seconds},
                {"cpu_seconds", one.median.cpu_seconds},
                {"spilled_share", spilled}};
    put_totals(result, one.median);
    result["runs"] = runs_json(one.run.rounds);
    json["results"].push_back(std::move(result));
    table.add({one.transport, seconds_text(one.median.seconds),
               fmt::format("{:.2f}", one.median.cpu_ns_per_hop()),
               fmt::format("{:.2f} %", 100 * spilled), verdict_text(one.median)});
  }
  if (flags.json) {
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print(
        "3 nodes, {} rows of 8 bytes, for each of which the last takes {} ns{}; medians of "
        "{}.\n\n{}",
        grouped(job.rows), job.ns_per_row, job.unpolled ? ", beside a query that nobody polls" : "",
        counted(flags.repetitions, "run"), table.text());
  }
  return exit_code_of(*all);
}

}  // namespace

void add_draining_commands(CLI::App& bench, int& exit_code) {
  auto [first, flags] = add_subcommand(
      bench, exit_code, "send-first",
      "A program that sends all its rows before it receives any, beside Worker::exchange",
      run_send_first);
  bench::SendFirstJob& job = flags.job;
  first.option_defaults()->always_capture_default();
  add_number(first, "--processes", job.process_count, "Each a node", 1, 4096);
  add_number(first, "--workers", job.workers_per_process, "Per process", 1, 4096);
  add_number(first, "--bytes", job.bytes_per_process, "Of rows that each process sends", 1,
             uint64_t{1} << 40);
  first.add_option("--row-bytes", job.row_bytes, "8, or 16 to 1048576")->type_name("N");
  add_repetitions_flag(first, job.rounds);
  add_transports_flag(first, flags.transports, "auto, shm, tcp and verbs");
  first.option_defaults()->always_capture_default(false);
  flags.settings.add_to(first);
  first.add_flag("--json", flags.json, "Print JSON");

  auto [pipeline, slow] = add_subcommand(
      bench, exit_code, "pipeline",
      "Three nodes in a row, the last one slow: how many rows pile up in overflow", run_pipeline);
  pipeline.option_defaults()->always_capture_default();
  add_number(pipeline, "--rows", slow.job.rows, "Of a run", 1, uint64_t{1} << 36);
  add_number(pipeline, "--ns-per-row", slow.job.ns_per_row, "That the last node takes for a row", 0,
             1'000'000'000);
  add_repetitions_flag(pipeline, slow.repetitions);
  add_transports_flag(pipeline, slow.transports, "auto, shm, tcp and verbs");
  pipeline.option_defaults()->always_capture_default(false);
  pipeline.add_flag("--unpolled", slow.job.unpolled,
                    "Beside a second query, which its receiver polls only afterwards");
  slow.settings.add_to(pipeline);
  pipeline.add_flag("--json", slow.json, "Print JSON");
}

}  // namespace faro::command::lab
