// `faro bench link`: the bandwidth of one lane, on one host (it starts both processes itself) or between
// two (each is started with --node and --nodes).
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "command/bench_parts.h"
#include "command/bench_report.h"
#include "command/exit_code.h"
#include "command/machine.h"
#include "command/node_flags.h"
#include "command/setting_flags.h"
#include "command/text.h"
#include "lab/bench/cluster_node.h"
#include "lab/bench/contest.h"
#include "lab/bench/link.h"

namespace faro::command {
namespace {

using bench::LinkJob;
using bench::LinkRun;
using bench::RunFigures;

struct Flags {
  SettingFlags settings;
  LinkJob job;
  std::vector<std::string> transports;
  uint32_t repetitions = 5;
  NodeFlags nodes;
  bool json = false;
};

struct Measured {
  std::string transport;
  LinkRun run;
  RunFigures median;

  double bytes_per_second(const LinkJob& job) const {
    return static_cast<double>(job.payload_bytes()) / median.seconds;
  }
};

Status flag_error(const std::string& flag, std::string_view message) {
  return Status(Code::invalid_argument, fmt::format("{}: {}", flag, message));
}

Status check(const Flags& flags) {
  if (Status status = flags.job.validate(); !status.ok())
    return flag_error("--frame", status.message());
  for (const std::string& name : flags.transports) {
    const Result<bench::Carrier> carrier = bench::parse_carrier(name);
    if (!carrier) return flag_error("--transport", carrier.status().message());
    if (!is_faro(*carrier)) return flag_error("--transport", "no baseline of sockets runs here");
  }
  FARO_RETURN_IF_ERROR(flags.nodes.check());
  if (flags.nodes.on_several_hosts() && flags.nodes.nodes().size() != LinkJob::kProcesses)
    return flag_error("--nodes", "the addresses of two nodes are needed");
  return Status::Ok();
}

/// This node's part. The reports of both nodes on node 0, elsewhere no rounds.
Result<LinkRun> run_on_hosts(const Flags& flags, const Config& config) {
  Result<Config> tuned = link_config(flags.job, config);
  if (!tuned) return tuned.status();
  bench::ClusterNodeOptions options;
  options.node = flags.nodes.node();
  options.nodes = flags.nodes.nodes();
  options.round_count = 1 + flags.repetitions;
  options.config = std::move(tuned).value();
  options.job_words = {flags.job.frame_bytes, flags.job.frame_count, flags.repetitions};
  Result<std::vector<bench::NodeReport>> nodes = run_cluster_node(options, link_worker(flags.job));
  if (!nodes) return nodes.status();
  LinkRun run;
  if (options.node != 0) return run;
  run.nodes = std::move(nodes).value();
  for (uint32_t round = 1; round < options.round_count; ++round) {
    bench::RoundTotals totals;
    for (const bench::NodeReport& node : run.nodes) {
      const bench::NodeRound& one = node.rounds[round];
      totals.seconds = std::max(totals.seconds, static_cast<double>(one.elapsed_ns) * 1e-9);
      totals.cpu_seconds += static_cast<double>(one.cpu_ns) * 1e-9;
      totals.count += one.count;
      totals.checksum += one.checksum;
    }
    run.rounds.push_back(figures_of(flags.job, totals));
  }
  return run;
}

Result<std::vector<Measured>> measure(const Flags& flags, Config config) {
  std::vector<std::string> names = flags.transports;
  if (names.empty()) {
    names = flags.nodes.on_several_hosts() ? std::vector<std::string>{"auto"}
                                           : std::vector<std::string>{"shm", "tcp"};
  }
  std::vector<Measured> all;
  for (const std::string& name : names) {
    FARO_RETURN_IF_ERROR(config.set("transport", std::string_view(name), "--transport"));
    Result<LinkRun> run = flags.nodes.on_several_hosts()
                              ? run_on_hosts(flags, config)
                              : run_link(flags.job, config, flags.nodes.hosts(), flags.repetitions);
    if (!run)
      return Status(run.status().code(), fmt::format("{}: {}", name, run.status().message()));
    if (run->rounds.empty()) continue;
    const RunFigures median = bench::median_of(run->rounds);
    all.push_back({name, std::move(run).value(), median});
  }
  return all;
}

std::string table_of(const LinkJob& job, const std::vector<Measured>& all) {
  using Align = Table::Align;
  Table table({Align::left, Align::right, Align::right, Align::right, Align::left});
  table.add({"transport", "time", "GB/s", "Gb/s", ""});
  for (const Measured& one : all) {
    const double bytes_per_second = one.bytes_per_second(job);
    table.add({one.transport, seconds_text(one.median.seconds),
               fmt::format("{:.3f}", bytes_per_second * 1e-9),
               fmt::format("{:.2f}", bytes_per_second * 8e-9), verdict_text(one.median)});
  }
  return table.text();
}

Json json_of(const LinkJob& job, const std::vector<Measured>& all) {
  Json json = origin_json(read_machine());
  json["frame_bytes"] = job.frame_bytes;
  json["frames"] = job.frame_count;
  json["results"] = Json::array();
  for (const Measured& one : all) {
    Json result;
    result["transport"] = one.transport;
    result["seconds"] = one.median.seconds;
    result["cpu_seconds"] = one.median.cpu_seconds;
    result["bytes_per_second"] = one.bytes_per_second(job);
    result["gigabits_per_second"] = one.bytes_per_second(job) * 8e-9;
    result["verified"] = one.median.verified;
    result["runs"] = Json::array();
    for (const RunFigures& run : one.run.rounds) result["runs"].push_back(run.seconds);
    result["nodes"] = Json::array();
    for (const bench::NodeReport& node : one.run.nodes)
      result["nodes"].push_back(metrics_json(node.metrics));
    json["results"].push_back(std::move(result));
  }
  return json;
}

int run(const Flags& flags) {
  Status status = check(flags);
  if (!status.ok()) return bench_error(status);
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  const Result<std::vector<Measured>> all = measure(flags, *config);
  if (!all) return bench_error(all.status());
  if (all->empty()) {
    fmt::print("node {}: done; node 0 has the results\n", flags.nodes.node());
    return kExitOk;
  }
  if (flags.json) {
    fmt::print("{}\n", json_of(flags.job, *all).dump(2));
  } else {
    fmt::print("{} frames of {} over one lane; medians of {}.\n\n{}",
               grouped(flags.job.frame_count), exact_bytes_text(flags.job.frame_bytes),
               counted(flags.repetitions, "run"), table_of(flags.job, *all));
  }
  const bool verified = std::all_of(all->begin(), all->end(),
                                    [](const Measured& one) { return one.median.verified; });
  return verified ? kExitOk : kExitFailed;
}

}  // namespace

void add_link_command(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand(
      "link", "The bandwidth of one lane between two processes, to compare with ib_write_bw");
  auto flags = std::make_shared<Flags>();
  command->option_defaults()->always_capture_default();
  command->add_option("--frame", flags->job.frame_bytes, "Bytes of a frame, a multiple of 64")
      ->type_name("BYTES");
  command->add_option("--count", flags->job.frame_count, "Frames of a run")->type_name("N");
  command->add_option("--repetitions", flags->repetitions, "Runs of which the median is taken")
      ->check(CLI::Range(1u, 1000u).description(""))
      ->type_name("N");
  command->option_defaults()->always_capture_default(false);
  command
      ->add_option("--transport", flags->transports,
                   "One or several, separated by commas, of auto, shm, tcp and verbs\n"
                   "(default: shm,tcp; on several hosts: auto)")
      ->delimiter(',')
      ->type_name("NAMES");
  flags->nodes.add_to(*command);
  flags->settings.add_to(*command);
  command->add_flag("--json", flags->json, "Print JSON, with all counters");
  command->footer(kExitCodeHelp);
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace faro::command
