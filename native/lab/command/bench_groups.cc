// `faro-lab bench groups`: rows to groups of receivers that overlap, beside one group, and beside a broadcast.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <string>

#include "command/build_json.h"
#include "command/machine.h"
#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/groups.h"
#include "lab/command/bench_parts.h"
#include "lab/workload/row_loops.h"

namespace faro::command::lab {
namespace {

struct Flags {
  SettingFlags settings;
  bench::GroupsJob job;
  bool json = false;
};

constexpr std::array<const char*, bench::kGroupWays> kWays = {"one_group", "overlap", "apart",
                                                              "broadcast"};

int run(const Flags& flags) {
  const Result<Config> config = flags.settings.load();
  if (!config) return bench_error(config.status());
  const Result<bench::GroupsFigures> all = bench::run_groups(flags.job, *config);
  if (!all) return bench_error(all.status());
  Json json = origin_json(read_machine());
  json["row_bytes"] = flags.job.row_bytes;
  json["verified"] = all->verified;
  Table table("lrrr");
  table.add({"", "CPU ns to send a row, per copy", "to receive one", "rows per frame"});
  for (size_t way = 0; way < kWays.size(); ++way) {
    const bench::GroupsFigures::Way& of = all->ways[way];
    json["ways"][kWays[way]] = {{"send_ns", of.send_ns},
                                {"receive_ns", of.receive_ns},
                                {"rows_per_frame", of.rows_per_frame}};
    table.add({kWays[way], fmt::format("{:.2f}", of.send_ns), fmt::format("{:.2f}", of.receive_ns),
               fmt::format("{:.1f}", of.rows_per_frame)});
  }
  if (flags.json) {
    fmt::print("{}\n", json_text(json, true));
  } else {
    fmt::print("{} rows of {} bytes, each to two workers of its node; medians of {}; {}.\n\n{}",
               grouped(flags.job.rows), flags.job.row_bytes, counted(flags.job.rounds, "run"),
               all->verified ? "verified" : "WRONG: not every row came once and whole",
               table.text());
  }
  return all->verified ? kExitOk : kExitFailed;
}

}  // namespace

void add_groups_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] = add_subcommand(
      bench, exit_code, "groups",
      "Rows to two groups that share a receiver, beside others and a broadcast", run);
  command.option_defaults()->always_capture_default();
  add_row_bytes_flag(command, flags.job.row_bytes, workload::kRowWidths);
  add_number(command, "--rows", flags.job.rows, "Rows of each run", 1, uint64_t{1} << 36);
  add_repetitions_flag(command, flags.job.rounds);
  command.option_defaults()->always_capture_default(false);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command::lab
