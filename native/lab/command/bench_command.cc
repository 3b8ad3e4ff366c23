#include <fmt/format.h>

#include <string>
#include <vector>

#include "command/setting_flags.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/command/bench_parts.h"
#include "lab/command/commands.h"

namespace faro::command::lab {
namespace {

struct Flags {
  SettingFlags settings;
  bool full = false;
  std::vector<std::string> parts;
  std::string java_class_path;
  bool json = false;
};

int run(const Flags& flags) {
  const Result<Config> config = flags.settings.load_valid();
  if (!config) return bench_error(config.status());
  const BenchInputs inputs{config.value(), flags.java_class_path, flags.json};
  return flags.full || !flags.parts.empty() ? run_full_bench(inputs, flags.parts)
                                            : run_standard_bench(inputs);
}

}  // namespace

void add_java_flag(CLI::App& command, std::string& class_path) {
  command
      .add_option("--java", class_path,
                  "Class path of java/lab/bench; adds the contestants that run in JVMs")
      ->type_name("PATHS");
}

void add_repetitions_flag(CLI::App& command, uint32_t& repetitions) {
  add_number(command, "--repetitions", repetitions, "Number of runs; the median is reported", 1,
             1000);
}

void add_transports_flag(CLI::App& command, std::vector<std::string>& transports,
                         const std::string& help) {
  command.add_option("--transport", transports, "One or several, separated by commas, of " + help)
      ->delimiter(',')
      ->type_name("NAMES");
}

void add_bench_command(CLI::App& app, int& exit_code) {
  auto [command, flags] = add_subcommand(
      app, exit_code, "bench",
      "The two-stage shuffle against a sockets baseline: one table, in a minute", run);
  command.require_subcommand(0, 1);
  command.add_flag("--full", flags.full, "Measure every figure that has a goal, and print both");
  command.add_option("--part", flags.parts, "Only these figures: " + full_bench_parts())
      ->delimiter(',')
      ->type_name("NAMES");
  add_java_flag(command, flags.java_class_path);
  flags.settings.add_to(command);
  command.add_flag("--json", flags.json, "Print JSON, with all counters");
  add_two_stage_command(command, exit_code);
  add_kernels_command(command, exit_code);
  add_channel_command(command, exit_code);
  add_link_command(command, exit_code);
  add_receive_command(command, exit_code);
}

}  // namespace faro::command::lab
