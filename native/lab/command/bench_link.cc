// `faro-lab bench link`: the bandwidth of one lane, on one host (it starts both processes itself) or between
// two (each is started with --node and --nodes).
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
#include "lab/bench/cluster_node.h"
#include "lab/bench/link.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"
#include "lab/command/node_flags.h"

namespace faro::command::lab {
namespace {

using bench::LinkJob;

struct Flags {
  SettingFlags settings;
  LinkJob job;
  std::vector<std::string> transports;
  uint32_t repetitions = 5;
  NodeFlags nodes;
  bool json = false;
};

double bytes_per_second(const LinkJob& job, const TransportRun& one) {
  return static_cast<double>(job.payload_bytes()) / one.median.seconds;
}

Status check(const Flags& flags) {
  if (Status status = flags.job.validate(); !status.ok())
    return flag_error("--frame", status.message());
  FARO_RETURN_IF_ERROR(check_transports(flags.transports));
  FARO_RETURN_IF_ERROR(flags.nodes.check());
  if (flags.nodes.on_several_hosts() && flags.nodes.nodes().size() != LinkJob::kProcesses)
    return flag_error("--nodes", "the addresses of two nodes are needed");
  return Status::Ok();
}

/// This node's part. On node 0 the results, elsewhere no rounds.
Result<bench::FaroRun> run_on_hosts(const Flags& flags, const Config& config) {
  bench::ClusterNodeOptions options;
  options.node = flags.nodes.node();
  options.nodes = flags.nodes.nodes();
  options.round_count = 1 + flags.repetitions;
  FARO_ASSIGN_OR_RETURN(options.config, link_config(flags.job, config));
  options.job_words = {flags.job.frame_bytes, flags.job.frame_count, flags.repetitions};
  return run_cluster_node(options, link_job(flags.job));
}

Result<std::vector<TransportRun>> measure(const Flags& flags, const Config& config) {
  const bool several_hosts = flags.nodes.on_several_hosts();
  std::vector<std::string> names = flags.transports;
  if (names.empty() && several_hosts) names = {"auto"};
  if (names.empty()) names = {"shm", "tcp"};
  say_what_auto_leaves_out(names, config);
  bench::RunOptions options;
  options.timed_rounds = flags.repetitions;
  return run_over(names, config, [&](const Config& each) {
    return several_hosts ? run_on_hosts(flags, each)
                         : run_link(flags.job, {each, flags.nodes.hosts()}, options);
  });
}

std::string table_of(const LinkJob& job, const std::vector<TransportRun>& all) {
  Table table("lrrrl");
  table.add({"transport", "time", "GB/s", "Gb/s", ""});
  for (const TransportRun& one : all) {
    const double speed = bytes_per_second(job, one);
    table.add({one.transport, seconds_text(one.median.seconds), fmt::format("{:.3f}", speed * 1e-9),
               fmt::format("{:.2f}", speed * 8e-9), verdict_text(one.median)});
  }
  return table.text();
}

Json json_of(const LinkJob& job, const std::vector<TransportRun>& all) {
  Json json = origin_json(read_machine());
  json["frame_bytes"] = job.frame_bytes;
  json["frames"] = job.frame_count;
  json["results"] = Json::array();
  for (const TransportRun& one : all) {
    Json result;
    result["transport"] = one.transport;
    result["seconds"] = one.median.seconds;
    result["cpu_seconds"] = one.median.cpu_seconds;
    result["bytes_per_second"] = bytes_per_second(job, one);
    result["gigabits_per_second"] = bytes_per_second(job, one) * 8e-9;
    result["verified"] = one.median.verified();
    result["runs"] = Json::array();
    for (const bench::RunFigures& run : one.run.rounds) result["runs"].push_back(run.seconds);
    result["nodes"] = nodes_json(one.run.nodes);
    json["results"].push_back(std::move(result));
  }
  return json;
}

int run(const Flags& flags) {
  if (const Status status = check(flags); !status.ok()) return bench_error(status);
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  const Result<std::vector<TransportRun>> all = measure(flags, *config);
  if (!all) return bench_error(all.status());
  if (all->empty()) {
    fmt::print("node {}: done; node 0 has the results\n", flags.nodes.node());
    return kExitOk;
  }
  if (flags.json) {
    fmt::print("{}\n", json_text(json_of(flags.job, *all), true));
  } else {
    fmt::print("{} frames of {} over one lane; medians of {}.\n\n{}",
               grouped(flags.job.frame_count), exact_bytes_text(flags.job.frame_bytes),
               counted(flags.repetitions, "run"), table_of(flags.job, *all));
  }
  return exit_code_of(*all);
}

}  // namespace

void add_link_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] = add_subcommand(
      bench, exit_code, "link",
      "The bandwidth of one lane between two processes, to compare with ib_write_bw", run);
  command.option_defaults()->always_capture_default();
  command.add_option("--frame", flags.job.frame_bytes, "Bytes of a frame, a multiple of 64")
      ->type_name("BYTES");
  command.add_option("--count", flags.job.frame_count, "Frames of a run")->type_name("N");
  add_repetitions_flag(command, flags.repetitions);
  command.option_defaults()->always_capture_default(false);
  add_transports_flag(command, flags.transports,
                      "auto, shm, tcp and verbs\n(default: shm,tcp; on several hosts: auto)");
  flags.nodes.add_to(command);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON, with all counters");
}

}  // namespace faro::command::lab
