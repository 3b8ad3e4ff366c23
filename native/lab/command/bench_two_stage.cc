// `faro-lab bench two-stage`: the two-stage shuffle of integers with everything as a flag, on one host
// (it starts the processes itself) or on several (each is started with --node and --nodes).
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "command/build_json.h"
#include "command/machine.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/cluster_node.h"
#include "lab/bench/cpu_pin.h"
#include "lab/bench/two_stage.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"
#include "lab/command/node_flags.h"
#include "lab/command/progress_line.h"

namespace faro::command::lab {
namespace {

using bench::Carrier;
using bench::TwoStageJob;

struct Flags {
  SettingFlags settings;
  TwoStageJob job;
  std::string hash = "finalizer";
  std::string delivery = "worker";
  std::vector<std::string> transports;
  std::string threshold;
  std::string ring;
  uint32_t repetitions = 7;
  NodeFlags nodes;
  uint32_t warmup = 1;
  double idle_seconds = 0;
  std::optional<uint32_t> pin;
  bool json = false;

  CLI::Option* processes_option = nullptr;
};

/// The flags, checked and put together.
struct Run {
  Config config;
  TwoStageJob job;
  std::vector<Carrier> carriers;
};

Result<Run> read_flags(const Flags& flags) {
  Run run;
  FARO_ASSIGN_OR_RETURN(run.config, flags.settings.load());
  FARO_RETURN_IF_ERROR(set_from_flag(run.config, "--ring", "ring.bytes", flags.ring));
  FARO_RETURN_IF_ERROR(
      set_from_flag(run.config, "--threshold", "transfer.threshold_bytes", flags.threshold));
  FARO_RETURN_IF_ERROR(validate_settings(run.config));

  TwoStageJob& job = run.job;
  job = flags.job;
  const Result<bench::HashKind> hash = bench::parse_hash(flags.hash);
  if (!hash) return flag_error("--hash", hash.status().message());
  job.hash = hash.value();
  if (flags.delivery == to_string(Delivery::node)) {
    job.delivery = Delivery::node;
  } else if (flags.delivery != to_string(Delivery::worker)) {
    return flag_error("--delivery", fmt::format("{} is neither worker nor node", flags.delivery));
  }

  const bool several_hosts = flags.nodes.on_several_hosts();
  std::vector<std::string> names = flags.transports;
  if (names.empty()) {
    names = several_hosts ? std::vector<std::string>{"auto"}
                          : std::vector<std::string>{"shm", "tcp", "sockets"};
  }
  FARO_RETURN_IF_ERROR(flags.nodes.check());
  if (several_hosts) {
    if (flags.processes_option->count() > 0) {
      return flag_error("--processes", "with --nodes there is one process per node");
    }
    job.process_count = static_cast<uint32_t>(flags.nodes.nodes().size());
  }
  FARO_RETURN_IF_ERROR(job.validate());
  say_what_auto_leaves_out(names, run.config);
  for (const std::string& name : names) {
    const Result<Carrier> carrier = bench::parse_carrier(name);
    if (!carrier) return flag_error("--transport", carrier.status().message());
    if (several_hosts && !is_faro(carrier.value())) {
      return flag_error("--transport", fmt::format("{} runs on one host only", name));
    }
    if (job.delivery != Delivery::worker && !is_faro(carrier.value())) {
      return flag_error("--delivery", fmt::format("{} sends to workers only", name));
    }
    run.carriers.push_back(carrier.value());
  }
  return run;
}

/// This node's part on several hosts. On node 0 the results, elsewhere none.
Result<std::vector<CarrierResult>> run_on_hosts(const Flags& flags, const Run& run,
                                                ProgressLine& line) {
  std::vector<CarrierResult> results;
  const TwoStageJob& job = run.job;
  for (const Carrier carrier : run.carriers) {
    const std::string name(carrier_name(carrier));
    bench::ClusterNodeOptions options;
    options.node = flags.nodes.node();
    options.nodes = flags.nodes.nodes();
    options.round_count = 1 + flags.repetitions;
    options.config = run.config;
    FARO_RETURN_IF_ERROR(options.config.set("transport", std::string_view(name), "bench"));
    options.job_words = {
        job.process_count, job.workers_per_process,         job.rows_per_process,
        job.row_bytes,     static_cast<uint64_t>(job.hash), static_cast<uint64_t>(carrier),
        flags.repetitions};
    // Nodes that know nothing of it deliver to workers.
    if (job.delivery != Delivery::worker)
      options.job_words.push_back(static_cast<uint64_t>(job.delivery));
    line.begin(fmt::format("{}, while waiting for all nodes", name));
    options.on_round = [&line, &options, &name](uint32_t round) {
      line.update(static_cast<double>(round) / options.round_count,
                  round == 0
                      ? fmt::format("{}, warm-up", name)
                      : fmt::format("{}, run {} of {}", name, round, options.round_count - 1));
    };
    FARO_ASSIGN_OR_RETURN(bench::FaroRun ran, run_cluster_node(options, two_stage_job(job)));
    if (options.node != 0) continue;
    CarrierResult result;
    result.carrier = carrier;
    result.job = job;
    result.median = median_of(ran.rounds);
    result.runs = std::move(ran.rounds);
    result.nodes = std::move(ran.nodes);
    result.connect_seconds.push_back(ran.connect_seconds);
    results.push_back(std::move(result));
  }
  return results;
}

/// Every carrier as often as asked for, in processes of its own each time. They take turns, so that what disturbs
/// the machine disturbs all of them.
Result<std::vector<CarrierResult>> run_here(const Flags& flags, const Run& run,
                                            ProgressLine& line) {
  const bench::CarrierOptions options{.config = run.config,
                                      .hosts = flags.nodes.hosts(),
                                      .idle_ns = static_cast<uint64_t>(flags.idle_seconds * 1e9)};
  bench::RunOptions rounds;
  rounds.warmup_rounds = 0;  // they are told apart below
  rounds.timed_rounds = flags.warmup + 1;
  std::vector<CarrierResult> results;
  for (const Carrier carrier : run.carriers) {
    results.emplace_back().carrier = carrier;
    results.back().job = run.job;
  }
  std::vector<std::vector<bench::RunFigures>> cold(results.size());
  line.begin(shape_text(run.job));
  for (uint32_t turn = 0; turn < flags.repetitions; ++turn) {
    for (size_t index = 0; index < results.size(); ++index) {
      CarrierResult& result = results[index];
      rounds.progress = [&](const bench::Progress& progress) {
        line.update(
            (turn + static_cast<double>(progress.round) / progress.round_count) / flags.repetitions,
            fmt::format("run {} of {}, {}", turn + 1, flags.repetitions,
                        carrier_name(result.carrier)));
      };
      FARO_ASSIGN_OR_RETURN(bench::CarrierRun ran,
                            run_carrier(result.carrier, run.job, options, rounds));
      cold[index].push_back(ran.rounds.front());
      result.runs.push_back(ran.rounds.back());
      if (ran.connect_seconds) result.connect_seconds.push_back(*ran.connect_seconds);
      result.nodes = std::move(ran.nodes);
    }
  }
  for (size_t index = 0; index < results.size(); ++index) {
    results[index].median = median_of(results[index].runs);
    results[index].cold = median_of(cold[index]);
  }
  return results;
}

int run(const Flags& flags) {
  const Result<Run> read = read_flags(flags);
  if (!read) return bench_error(read.status());
  std::optional<bench::CpuPin> pin;
  if (flags.pin) {
    Result<bench::CpuPin> pinned = bench::CpuPin::pin(*flags.pin);
    if (!pinned) return bench_error(flag_error("--pin", pinned.status().message()));
    pin.emplace(std::move(pinned).value());
  }

  TwoStageReport report;
  {
    ProgressLine line;
    Result<std::vector<CarrierResult>> results = !flags.nodes.on_several_hosts()
                                                     ? run_here(flags, read.value(), line)
                                                     : run_on_hosts(flags, read.value(), line);
    line.clear();
    if (!results) return bench_error(results.status());
    report.results = std::move(results).value();
  }
  if (report.results.empty()) {
    fmt::print("node {}: done; node 0 has the results\n", flags.nodes.node());
    return kExitOk;
  }
  const TwoStageJob& job = read.value().job;
  report.title = shape_text(job);
  report.laps = flags.repetitions;
  report.pinned_cpu = flags.pin;
  if (flags.json) {
    Json all = origin_json(read_machine());
    all["settings"] = Json::object();
    for (const SettingInfo& info : Config::table()) {
      if (read.value().config.source(info.name) != "default") {
        all["settings"][std::string(info.name)] = read.value().config.get(info.name);
      }
    }
    all["contests"] = {report_json(report)};
    fmt::print("{}\n", json_text(all, true));
  } else {
    fmt::print(
        "Two-stage shuffle of {} rows of {} bytes per process, hash {}{}; medians of {}.\n\n{}",
        grouped(job.rows_per_process), job.row_bytes, hash_name(job.hash),
        report.pinned_cpu ? fmt::format(", all on processor {}", *report.pinned_cpu) : "",
        counted(flags.repetitions, "run"), table_of(report));
  }
  return all_verified(report) ? kExitOk : kExitFailed;
}

}  // namespace

void add_two_stage_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] =
      add_subcommand(bench, exit_code, "two-stage",
                     "The two-stage shuffle of integers, with a flag for everything", run);
  TwoStageJob& job = flags.job;
  command.option_defaults()->always_capture_default();
  flags.processes_option =
      add_number(command, "--processes", job.process_count, "Each a node", 1, 4096);
  add_number(command, "--workers", job.workers_per_process, "Per process", 1, 4096);
  add_number(command, "--rows", job.rows_per_process, "Rows that each process generates", 0,
             uint64_t{1} << 48);
  add_row_bytes_flag(command, job.row_bytes, bench::kJobWidths);
  command.add_option("--hash", flags.hash, "finalizer or multiplicative")->type_name("NAME");
  command
      .add_option("--delivery", flags.delivery,
                  "worker, or node: any worker of a process takes its rows (with --set "
                  "lane.ends=node)")
      ->type_name("NAME");
  add_repetitions_flag(command, flags.repetitions);
  add_number(command, "--warmup", flags.warmup,
             "Untimed runs before each timed one, in the same processes", 1, 1000);
  command
      .add_option("--idle", flags.idle_seconds,
                  "Before the first run all workers of Faro in C++ wait so long for nothing")
      ->check(CLI::Range(0.0, 3600.0).description(""))
      ->type_name("SECONDS");
  command.option_defaults()->always_capture_default(false);
  add_transports_flag(
      command, flags.transports,
      bench::carrier_names() + "\n(default: shm,tcp,sockets; on several hosts: auto)");
  command.add_option("--ring", flags.ring, "Size of one ring, as ring.bytes: 32KiB")
      ->type_name("SIZE");
  command
      .add_option("--threshold", flags.threshold,
                  "Bytes before a transfer starts, as transfer.threshold_bytes:\n16KiB, or half "
                  "of ring.bytes if that is less")
      ->type_name("SIZE");
  command.add_option("--pin", flags.pin, "Keep all processes on this processor")->type_name("CPU");
  flags.nodes.add_to(command);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON, with all counters");
}

}  // namespace faro::command::lab
