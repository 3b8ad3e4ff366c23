// The faro command. Each sub-command has a file of its own.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

#include "command/commands.h"
#include "command/exit_code.h"
#include "command/version.h"

namespace {

using namespace faro::command;

int run(int argc, char** argv) {
  CLI::App app{"Faro: the shuffle of a distributed query engine"};
  app.name("faro");
  app.set_version_flag("--version", version_text(), "Print version, commit and compiler");
  app.get_formatter()->column_width(28);
  app.require_subcommand(1);
  app.footer(kExitCodeHelp);
  int exit_code = kExitOk;
  add_bench_command(app, exit_code);
  add_plan_command(app, exit_code);
  add_doctor_command(app, exit_code);
  add_stat_command(app, exit_code);
  add_top_command(app, exit_code);
  add_explain_command(app, exit_code);
  add_config_command(app, exit_code);
  add_simulate_command(app, exit_code);
  add_soak_command(app, exit_code);
  const auto is_first_word = [&](const CLI::App* command) {
    return command->get_name() == argv[1];
  };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_first_word).empty()) {
    // CLI11 alone would only say that a sub-command is required.
    fmt::print(stderr,
               "faro: unknown command '{}': bench, plan, doctor, stat, top, explain, config, "
               "simulate or soak\n",
               argv[1]);
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version come here too, with a code of 0.
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "faro: {}\n", error.what());
    return kExitFailed;
  }
}
