#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>

#include "command/subcommand.h"
#include "command/temporary_secret.h"
#include "command/text.h"
#include "lab/command/commands.h"
#include "lab/soak/memory_trend.h"
#include "lab/soak/soak.h"

namespace faro::command::lab {
namespace {

constexpr double kLineSeconds = 60;

std::string losses_text(const char* kind, const soak::Losses& losses) {
  if (losses.count == 0) return fmt::format("0 {}", kind);
  return fmt::format("{} {} (told by {} within {:.3f} s)", losses.count, kind,
                     counted(losses.told, "survivor"), losses.longest_seconds);
}

std::string usage_text(const char* who, const soak::Usage& usage) {
  return fmt::format("{} {}, {} descriptors, {} threads", who, bytes_text(usage.resident_bytes),
                     usage.descriptors, usage.threads);
}

std::string changes_text(const soak::Progress& now, bool churn) {
  const std::string losses =
      losses_text("killed", now.killed) + ", " + losses_text("stopped", now.stopped);
  if (!churn) return fmt::format("{}, {} returned, {} paused", losses, now.returned, now.paused);
  return fmt::format("{} joined, {} drained, {}, {}", now.joined, now.drained,
                     losses_text("removed", now.removed), losses);
}

void print_line(const soak::Progress& now, bool churn) {
  fmt::print(
      "{:6.1f} s  {} clusters, {} queries ({} failed by a loss, {} cancelled), {} rows; {}; {}; "
      "{}\n",
      now.seconds, now.clusters, now.queries, now.failed, now.cancelled, now.rows,
      changes_text(now, churn),
      usage_text("witness", now.witness) + ", heap " + bytes_text(now.witness_heap_bytes),
      usage_text("controller", now.controller));
  std::fflush(stdout);
}

// Decides all random choices.
std::string command_of(const soak::Options& options) {
  std::string command =
      fmt::format("faro-lab soak --seed {} --liveness-ms {}", options.seed, options.liveness_ms);
  if (options.churn) command += " --churn";
  if (options.kills != 0) command += fmt::format(" --kills {}", options.kills);
  if (!options.transport.empty()) command += " --transport " + options.transport;
  if (options.hosts != soak::Options().hosts)
    command += fmt::format(" --host {}", fmt::join(options.hosts, ","));
  return command;
}

int run(soak::Options& options) {
  const Result<TemporarySecret> secret = TemporarySecret::make();
  if (!secret) return report_error("faro-lab soak", secret.status());
  options.secret_file = secret->path();
  fmt::print(
      "seed {}, {} nodes, of which node {} is the witness, liveness.timeout_ms = {}\n",
      options.seed,
      options.churn ? fmt::format("up to {}", soak::kNodeLimit) : std::to_string(soak::kNodes),
      soak::witness_of(options), options.liveness_ms);
  std::fflush(stdout);  // or every node that is forked would print it again
  double last_line = 0;
  const soak::Report report = soak::run_soak(options, [&](const soak::Progress& now) {
    if (now.seconds - last_line < kLineSeconds) return;
    last_line = now.seconds;
    print_line(now, options.churn);
  });
  const soak::Progress& total = report.total;
  print_line(total, options.churn);
  fmt::print("memory: {}\n", report.memory);
  if (!report.violation.empty()) {
    fmt::print("broken: {}\nto repeat its plan: {}\n", report.violation, command_of(options));
    return kExitFailed;
  }
  fmt::print(
      "every row compared; every loss told within {:.1f} + {:.0f} s by name; {}: no "
      "descriptor, thread or file left{}\n",
      static_cast<double>(options.liveness_ms) / 1e3, soak::kTellingSeconds,
      counted(total.quiet_looks, "look"), report.memory_is_known ? ", memory flat" : "");
  return kExitOk;
}

}  // namespace

void add_soak_command(CLI::App& app, int& exit_code) {
  auto [command, options] = add_subcommand(app, exit_code, "soak",
                                           "Run clusters of real processes whose nodes are paused, "
                                           "stopped, killed and restarted, or come "
                                           "and go",
                                           run);
  options.seed = std::random_device()();
  command.add_option("--seconds", options.seconds, "Duration (default: 1200)")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("S");
  CLI::Option* const kills =
      command
          .add_option(
              "--kills", options.kills,
              "Instead, run this many clusters, each with one node killed and no other fault")
          ->type_name("N");
  command
      .add_flag("--churn", options.churn,
                "Sessions whose nodes join, are drained, removed and killed all the time")
      ->excludes(kills);
  command.add_option("--seed", options.seed, "Seed of all random choices (default: random)")
      ->type_name("S");
  command.add_option("--liveness-ms", options.liveness_ms, "liveness.timeout_ms (default: 2000)")
      ->check(CLI::Range(100, 60000))
      ->type_name("MS");
  command.add_option("--transport", options.transport, "Only this one: shm, tcp, verbs or auto")
      ->check(CLI::IsMember({"shm", "tcp", "verbs", "auto"}).description(""))
      ->type_name("T");
  command
      .add_option("--host", options.hosts,
                  "Numeric addresses of this host, separated by commas: the nodes take turns to "
                  "listen on them (default: 127.0.0.1)")
      ->delimiter(',')
      ->type_name("ADDRESSES");
  command.footer(
      "A line every minute. It ends with 1 if a row is wrong; a query ends as it should not; a "
      "loss is\n"
      "told too late or without the name; a node hangs; or, between two clusters, a process has "
      "more\n"
      "descriptors or threads than at first, or a file is left; or if memory grows: of the witness "
      "(the\n"
      "node that meets with no fault) or the controller by more than 1 MiB, of the witness's heap "
      "by\n"
      "more than 64 KiB, by the medians of the second and the last quarter of these looks. Fewer "
      "than\n" +
      std::to_string(soak::MemoryTrend::kNeeded) + " looks tell nothing of that.\n" +
      std::string(kExitCodeHelp));
}

}  // namespace faro::command::lab
