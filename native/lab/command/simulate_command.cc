#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>

#include "base/clock.h"
#include "command/subcommand.h"
#include "command/version.h"
#include "lab/command/commands.h"
#include "lab/command/progress_line.h"
#include "lab/command/seed_ranges.h"
#include "lab/network/page.h"
#include "lab/simulation/channels/channel_run.h"
#include "lab/simulation/churn/churn_run.h"
#include "lab/simulation/operators/aggregation_run.h"
#include "lab/simulation/operators/join_run.h"
#include "lab/workload/chance.h"

namespace faro::command::lab {
namespace {

// How often the file of --resume is written; a killed process loses what came later.
constexpr double kSaveSeconds = 5;

struct Flags {
  uint64_t seed = 1;
  uint64_t runs = 2000;
  std::string resume;
  bool channels = false;
  bool operators = false;
  bool joins = false;
  bool network = false;
};

double seconds_now() { return static_cast<double>(base::SystemClock::instance().now_ns()) * 1e-9; }

using RunSeed = simulation::RunReport (*)(uint64_t seed);

/// Runs what is left of a range. Returns the report of the run that found a violation, if one did.
std::optional<simulation::RunReport> run_range(SeedRange& range, const SeedRanges& ranges,
                                               bool keeps_file, RunSeed run_seed, Status& saved) {
  ProgressLine progress;
  progress.begin(fmt::format("seeds {} … {}", range.seed, range.seed + range.runs - 1));
  const double seconds_before = range.seconds;
  const double start = seconds_now();
  double last_save = start;
  while (range.done < range.runs) {
    simulation::RunReport report = run_seed(range.seed + range.done);
    if (!report.violation.empty()) return report;
    ++range.done;
    range.hash = workload::mix(range.hash, report.hash);
    range.coverage.merge(report.coverage);
    const double now = seconds_now();
    range.seconds = seconds_before + (now - start);
    if (keeps_file && (now - last_save > kSaveSeconds || range.done == range.runs)) {
      last_save = now;
      saved = ranges.save();
      if (!saved.ok()) return std::nullopt;
    }
    if (range.done % 16 == 0) {
      progress.update(static_cast<double>(range.done) / static_cast<double>(range.runs),
                      fmt::format("{} runs", range.done));
    }
  }
  return std::nullopt;
}

/// Prints the page of the model of a network, section by section: each takes seconds.
int run_network(uint64_t seed) {
  bool is_met = true;
  fmt::print("{}", network::page_head(seed));
  for (const network::MakeSection make : network::page_sections()) {
    const network::Section section = make(seed);
    fmt::print("\n{}\n", section.text);
    for (const network::Goal& goal : section.goals) {
      fmt::print("  {}  {}\n", goal.is_met ? "met   " : "MISSED", goal.text);
      is_met = is_met && goal.is_met;
    }
    std::fflush(stdout);
  }
  return is_met ? kExitOk : kExitFailed;
}

int run(const Flags& flags) {
  if (flags.network) return run_network(flags.seed);
  const char* const what = flags.channels    ? " --channels"
                           : flags.operators ? " --operators"
                           : flags.joins     ? " --joins"
                                             : "";
  const RunSeed run_seed = flags.channels    ? simulation::run_channel_seed
                           : flags.operators ? simulation::run_aggregation_seed
                           : flags.joins     ? simulation::run_join_seed
                                             : simulation::run_cluster_seed;
  Result<SeedRanges> loaded = SeedRanges::load(flags.resume);
  if (!loaded) return report_error("faro-lab simulate", loaded.status());
  SeedRange& range = loaded->find_or_add(flags.seed, flags.runs, version_text() + what);
  if (range.done > 0) fmt::print("{} of {} runs were done before\n", range.done, range.runs);
  Status saved;
  const auto violation = run_range(range, *loaded, !flags.resume.empty(), run_seed, saved);
  fmt::print("{}", range.coverage.to_string());
  fmt::print(
      "\n{} of {} runs from seed {} without a violation, {:.1f} s, {:.1f} runs/s, hash {:016x}\n",
      range.done, range.runs, range.seed, range.seconds,
      range.seconds > 0 ? static_cast<double>(range.done) / range.seconds : 0, range.hash);
  if (!saved.ok()) return report_error("faro-lab simulate", saved);
  if (!violation) return kExitOk;
  fmt::print("\n{}\nseed {}: {}\nto repeat it: faro-lab simulate{} --seed {} --runs 1\n",
             violation->trace, violation->seed, violation->violation, what, violation->seed);
  return kExitFailed;
}

}  // namespace

void add_simulate_command(CLI::App& app, int& exit_code) {
  auto [command, flags] =
      add_subcommand(app, exit_code, "simulate",
                     "Simulate whole clusters and their faults in one thread, by seed", run);
  command.add_option("--seed", flags.seed, "First seed (default: 1)")->type_name("S");
  CLI::Option* const runs =
      command.add_option("--runs", flags.runs, "Number of runs, a seed each (default: 2000)")
          ->check(CLI::PositiveNumber.description(""))
          ->type_name("N");
  CLI::Option* const channels = command.add_flag(
      "--channels", flags.channels,
      "Endpoints whose peers come and go, and their channels, instead of clusters");
  CLI::Option* const operators =
      command
          .add_flag("--operators", flags.operators, "Aggregations over clusters, with an oracle")
          ->excludes(channels);
  CLI::Option* const joins =
      command.add_flag("--joins", flags.joins, "Joins over clusters, with an oracle")
          ->excludes(channels)
          ->excludes(operators);
  CLI::Option* const resume =
      command
          .add_option("--resume", flags.resume,
                      "Keeps in this file how far each range of seeds got, and continues there;\n"
                      "a range is its seed, its number of runs and the build that runs it")
          ->type_name("FILE");
  command
      .add_flag(
          "--network", flags.network,
          "A model of hosts and a switch instead: what share of the links each way to decide who\n"
          "sends to whom uses; takes a minute or two, and exits with 1 if a figure misses its goal")
      ->excludes(runs)
      ->excludes(channels)
      ->excludes(operators)
      ->excludes(joins)
      ->excludes(resume);
  command.footer(
      "It stops at the first violation, with what was broken, the last events, and the command\n"
      "that repeats the run.\n" +
      std::string(kExitCodeHelp));
}

}  // namespace faro::command::lab
