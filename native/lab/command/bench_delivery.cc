// `faro-lab bench delivery`: what delivery to nodes is worth where rows fall on few workers, or workers take none.
// `faro-lab bench skew`: how many times the mean the most loaded unit gets, by the number of units.
// `faro-lab bench ring-memory`: what an open cluster takes, beside what `faro plan` says.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "base/settings.h"
#include "command/build_json.h"
#include "command/machine.h"
#include "command/plan.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/delivery.h"
#include "lab/bench/node_life.h"
#include "lab/bench/ring_memory.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"

namespace faro::command::lab {
namespace {

using bench::DeliveryJob, bench::DeliveryWay;

struct DeliveryFlags {
  SettingFlags settings;
  DeliveryJob job;
  std::string which = "skewed";
  bool json = false;
};

/// What of all, times the number of workers: 1 if all of them have as much.
double times_mean(double most, double all, const DeliveryJob& job) {
  return all > 0 ? most * job.worker_count() / all : 0;
}

Json way_json(const DeliveryJob& job, const DeliveryWay& way, uint32_t processors) {
  Json json{{"name", way.name}};
  put_totals(json, way.median);
  json["bytes_to_others"] = way.bytes_to_others;
  json["runs"] = Json::array();
  for (const bench::RunFigures& run : way.rounds) {
    json["runs"].push_back(
        {{"seconds", run.seconds},
         {"cpu_seconds", run.cpu_seconds},
         {"least_seconds", least_seconds(run, processors)},
         {"busiest_cpu_times_mean", times_mean(run.busiest_cpu_seconds, run.cpu_seconds, job)},
         {"most_rows_times_mean",
          times_mean(run.most_rows, static_cast<double>(run.totals.count), job)}});
  }
  return json;
}

/// Medians of the rounds' ratios: of two runs one after the other.
double ratio(const DeliveryWay& one, const DeliveryWay& other,
             const std::function<double(const bench::RunFigures&)>& of) {
  std::vector<double> ratios;
  for (size_t round = 0; round < one.rounds.size(); ++round)
    ratios.push_back(of(one.rounds[round]) / of(other.rounds[round]));
  return bench::median(std::move(ratios));
}

std::string table_of(const DeliveryJob& job, const std::vector<DeliveryWay>& ways,
                     uint32_t processors) {
  Table table("lrrrrrrrrl");
  table.add({"", "time", "times", "CPU", "times", "at least", "times", "busiest: CPU, rows",
             "to other nodes", ""});
  for (const DeliveryWay& way : ways) {
    const auto least = [&](const bench::RunFigures& run) { return least_seconds(run, processors); };
    const auto times = [&](const std::function<double(const bench::RunFigures&)>& of) {
      return fmt::format("{:.2f}", ratio(way, ways.front(), of));
    };
    const bench::RunFigures& run = way.median;
    table.add(
        {way.name, seconds_text(run.seconds), times(&bench::RunFigures::seconds),
         seconds_text(run.cpu_seconds), times(&bench::RunFigures::cpu_seconds),
         seconds_text(least(run)), times(least),
         fmt::format("{:.2f}, {:.2f}", times_mean(run.busiest_cpu_seconds, run.cpu_seconds, job),
                     times_mean(run.most_rows, static_cast<double>(run.totals.count), job)),
         bytes_text(way.bytes_to_others), verdict_text(run)});
  }
  return table.text();
}

int run_delivery(const DeliveryFlags& flags) {
  DeliveryJob job = flags.job;
  const Result<bench::DeliveryCase> which = bench::parse_delivery_case(flags.which);
  if (!which) return bench_error(flag_error("--case", which.status().message()));
  job.which = *which;
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  const Result<std::vector<DeliveryWay>> ways = bench::run_delivery(job, *config);
  if (!ways) return bench_error(ways.status());
  const Machine machine = read_machine();
  if (flags.json) {
    Json json = origin_json(machine);
    json["case"] = flags.which;
    json["processes"] = job.process_count;
    json["workers"] = job.workers_per_process;
    json["rows"] = job.rows;
    json["row_bytes"] = job.row_bytes();
    json["ways"] = Json::array();
    for (const DeliveryWay& way : *ways)
      json["ways"].push_back(way_json(job, way, machine.processors));
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print(
        "{}: {} × {}, {} rows of {}; medians of {}, by turns; times: of the first way's.\nAt "
        "least: "
        "the CPU of the busiest worker, or that of all shared by {}.\n\n{}",
        flags.which, counted(job.process_count, "process"),
        counted(job.workers_per_process, "worker"), grouped(job.rows),
        exact_bytes_text(job.row_bytes()), counted(job.rounds, "run"),
        counted(machine.processors, "processor"), table_of(job, *ways, machine.processors));
  }
  const bool verified =
      std::ranges::all_of(*ways, [](const DeliveryWay& way) { return way.median.verified(); });
  return verified ? kExitOk : kExitFailed;
}

struct SkewFlags {
  uint64_t rows = 24'000'000;
  double part = 0.0056;
  std::vector<uint32_t> units = {240, 6};
  bool json = false;
};

int run_skew(const SkewFlags& flags) {
  Json json = origin_json(read_machine());
  json["rows"] = flags.rows;
  json["part"] = flags.part;
  json["units"] = Json::array();
  Table table("rr");
  table.add({"units", "most loaded, times the mean"});
  for (const uint32_t units : flags.units) {
    const double most = bench::most_loaded(flags.rows, flags.part, units);
    json["units"].push_back({{"units", units}, {"most_times_mean", most}});
    table.add({grouped(units), fmt::format("{:.3f}", most)});
  }
  if (flags.json) {
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print("{} rows, of which {:.2f} % have one key.\n\n{}", grouped(flags.rows),
               flags.part * 100, table.text());
  }
  return kExitOk;
}

struct MemoryFlags {
  SettingFlags settings;
  uint32_t processes = 4;
  std::vector<uint32_t> workers = {1, 8};
  std::string transport = "shm";
  bool json = false;
};

/// What `faro plan` says that all nodes take by being open.
Result<bench::OpenMemory> planned(const Config& config, uint32_t processes, uint32_t workers) {
  const std::vector<std::string> nodes(processes, "node:0");
  FARO_ASSIGN_OR_RETURN(const Config own, bench::node_config(config, 0, nodes, workers));
  PlanInput input;
  FARO_ASSIGN_OR_RETURN(input.settings, base::Settings::resolve(own));
  input.nodes_per_host = processes;
  const NodePlan plan = make_plan(input, state_sizes_of_this_build()).sum(0, processes);
  const uint64_t mirrors = plan.shm.links > 0 ? 0 : plan.rings.outgoing_bytes;
  return bench::OpenMemory{plan.open_bytes(),
                           mirrors + plan.rings.incoming_bytes + plan.rings.local_bytes};
}

int run_memory(const MemoryFlags& flags) {
  if (flags.transport != "shm" && flags.transport != "tcp")
    return bench_error(flag_error("--transport", "must be shm or tcp"));
  Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  if (const Status status = config->set("transport", flags.transport); !status.ok())
    return bench_error(status);
  const Result<base::Settings> settings = base::Settings::resolve_without_nodes(*config);
  if (!settings) return bench_error(settings.status());
  // Said, so that links of one lane each way have rings of that size, too.
  if (const Status status = config->set("ring.bytes", settings->ring_bytes); !status.ok())
    return bench_error(status);
  Json json = origin_json(read_machine());
  json["processes"] = flags.processes;
  json["transport"] = flags.transport;
  json["ring_bytes"] = settings->ring_bytes;
  json["lane_ends"] = config->get("lane.ends");
  json["shapes"] = Json::array();
  Table table("rrrrrrr");
  table.add({"workers", "rings", "planned", "times", "all", "planned", "times"});
  for (const uint32_t workers : flags.workers) {
    const Result<bench::OpenMemory> plan = planned(*config, flags.processes, workers);
    if (!plan) return bench_error(plan.status());
    const Result<bench::OpenMemory> taken =
        bench::open_cluster_memory(flags.processes, workers, *config);
    if (!taken) return bench_error(taken.status());
    json["shapes"].push_back({{"workers", workers},
                              {"ring_bytes", taken->ring_bytes},
                              {"planned_ring_bytes", plan->ring_bytes},
                              {"taken_bytes", taken->bytes},
                              {"planned_bytes", plan->bytes}});
    const auto times = [](uint64_t one, uint64_t other) {
      return fmt::format("{:.3f}", static_cast<double>(one) / static_cast<double>(other));
    };
    table.add({grouped(workers), bytes_text(taken->ring_bytes), bytes_text(plan->ring_bytes),
               times(taken->ring_bytes, plan->ring_bytes), bytes_text(taken->bytes),
               bytes_text(plan->bytes), times(taken->bytes, plan->bytes)});
  }
  if (flags.json) {
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print(
        "{} over {}, rings of {}, lane.ends = {}; memory of all together. Rings: what more "
        "it is with rings twice as large.\n\n{}",
        counted(flags.processes, "process"), flags.transport,
        exact_bytes_text(settings->ring_bytes), config->get("lane.ends"), table.text());
  }
  return kExitOk;
}

void add_delivery_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] = add_subcommand(
      bench, exit_code, "delivery",
      "Rows that any worker of a node may take, where they fall on few or some take none",
      run_delivery);
  DeliveryJob& job = flags.job;
  command.option_defaults()->always_capture_default();
  command.add_option("--case", flags.which, bench::kDeliveryCases)->type_name("NAME");
  add_number(command, "--processes", job.process_count, "Each a node", 1, 4096);
  add_number(command, "--workers", job.workers_per_process, "Per process", 1, 4096);
  add_number(command, "--rows", job.rows, "That all workers send", 1, uint64_t{1} << 36);
  add_number(command, "--steps", job.steps_per_row,
             "Of four instructions, with each row of the first three cases", 0, 1'000'000);
  add_number(command, "--hold-ns", job.hold_ns, "How long the one that holds a batch sleeps", 0,
             uint64_t{1} << 36);
  add_repetitions_flag(command, job.rounds);
  command.option_defaults()->always_capture_default(false);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON");
}

void add_skew_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] =
      add_subcommand(bench, exit_code, "skew",
                     "What the most loaded unit gets of rows of which some have one key", run_skew);
  command.option_defaults()->always_capture_default();
  add_number(command, "--rows", flags.rows, "Of all", 1, uint64_t{1} << 36);
  command.add_option("--part", flags.part, "Of the rows that have one key, 0 to 1")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->type_name("X");
  command.add_option("--units", flags.units, "Workers or nodes; one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20).description(""))
      ->type_name("N");
  command.option_defaults()->always_capture_default(false);
  command.add_flag("--json", flags.json, "Print JSON");
}

void add_ring_memory_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] =
      add_subcommand(bench, exit_code, "ring-memory",
                     "What an open cluster takes, beside what `faro plan` says", run_memory);
  command.option_defaults()->always_capture_default();
  add_number(command, "--processes", flags.processes, "Each a node", 1, 4096);
  command.add_option("--workers", flags.workers, "Per process; one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(1u, 4096u).description(""))
      ->type_name("N");
  command.add_option("--transport", flags.transport, "shm or tcp")->type_name("NAME");
  command.option_defaults()->always_capture_default(false);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace

void add_delivery_commands(CLI::App& bench, int& exit_code) {
  add_delivery_command(bench, exit_code);
  add_skew_command(bench, exit_code);
  add_ring_memory_command(bench, exit_code);
}

}  // namespace faro::command::lab
