#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "command/commands.h"
#include "command/node_watch.h"
#include "command/stat_report.h"
#include "command/subcommand.h"
#include "command/terminal.h"

namespace faro::command {
namespace {

// Nodes and their headings, queries, headings of workers and lanes.
constexpr size_t kOtherLines = 14;

struct Flags {
  NodeWatch watch;
  double interval_s = 1;
  CLI::Option* interval = nullptr;
  bool once = false;
  bool json = false;
  bool all = false;
};

void wait_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

int run_stat(Flags& flags) {
  Result<Sample> first = flags.watch.look();
  if (!first.ok()) return report_error("faro stat", first.status());
  if (first->empty()) return report_error("faro stat", flags.watch.none());
  StatOrder order;
  order.idle_too = flags.all;
  if (flags.all) order.most_lanes = order.most_workers = SIZE_MAX;
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const bool redraw = !flags.once && !flags.json && is_terminal;
  // Whoever reads a file or a pipe waits for its end, unless he has asked for a sample each that
  // many seconds.
  const bool once = flags.once || (!is_terminal && flags.interval->empty());
  for (;;) {
    wait_for(flags.interval_s);
    const Result<Sample> sample = flags.watch.look();
    if (!sample.ok()) return report_error("faro stat", sample.status());
    if (sample->empty()) return once ? report_error("faro stat", flags.watch.none()) : kExitOk;
    const std::string text =
        flags.json ? json_text(stat_json(*sample), once) : stat_text(*sample, order);
    fmt::print("{}{}\n", redraw ? kClearScreen : "", text);
    // What could not be written is an error at the end.
    if (std::fflush(stdout) != 0 || once) return kExitOk;
  }
}

int run_top(Flags& flags) {
  Result<Sample> sample = flags.watch.look();
  if (!sample.ok()) return report_error("faro top", sample.status());
  if (sample->empty()) return report_error("faro top", flags.watch.none());
  const Result<std::unique_ptr<Terminal>> terminal = Terminal::open();
  if (!terminal.ok()) return report_error("faro top", terminal.status());
  StatOrder order{.by_rate = true};
  while (!(*terminal)->key_that_ends(flags.interval_s)) {
    sample = flags.watch.look();
    if (!sample.ok()) return report_error("faro top", sample.status());
    const size_t lines = (*terminal)->lines();
    const size_t free = lines > kOtherLines + 2 ? lines - kOtherLines : 2;
    order.most_workers = free / 2;
    order.most_lanes = free - order.most_workers;
    (*terminal)->show(sample->empty() ? std::string(flags.watch.none().message()) + "\n"
                                      : stat_text(*sample, order));
  }
  return kExitOk;
}

void add_common(CLI::App& command, Flags& flags) {
  flags.watch.add_to(command);
  flags.interval =
      command.add_option("--interval", flags.interval_s, "Seconds between two samples")
          ->check(CLI::Range(0.01, 3600.0))
          ->type_name("SECONDS");
}

}  // namespace

void add_stat_command(CLI::App& app, int& exit_code) {
  auto [command, flags] = add_subcommand(
      app, exit_code, "stat",
      "What the nodes and endpoints of this host do: lanes, channels, rates, waits, slow consumers",
      run_stat);
  add_common(command, flags);
  command.add_flag("--once", flags.once,
                   "Print one table over one interval, then exit; so it does without\n"
                   "--interval if its output is no terminal");
  command.add_flag("--json", flags.json, "Print JSON, an object per line unless --once");
  command.add_flag("--all", flags.all, "Show idle lanes and channels, too");
}

void add_top_command(CLI::App& app, int& exit_code) {
  auto [command, flags] =
      add_subcommand(app, exit_code, "top",
                     "The same, sorted by rate, in the terminal, until q or Ctrl-C", run_top);
  add_common(command, flags);
}

}  // namespace faro::command
