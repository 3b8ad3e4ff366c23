// The faro command. Each sub-command has a file of its own.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "command/commands.h"
#include "command/exit_code.h"
#include "command/version.h"

namespace {

using namespace faro::command;

// What was printed is written before the exit code is chosen: a full disk, or a pipe whose reader
// has gone, is a failure.
int written(int exit_code) {
  errno = 0;
  const bool is_written = std::cout.flush().good() && std::fflush(stdout) == 0;
  if (is_written && std::ferror(stdout) == 0) return exit_code;
  say_error(fmt::format("faro: the output could not be written{}{}\n", errno == 0 ? "" : ": ",
                        errno == 0 ? "" : std::strerror(errno)));
  return kExitFailed;
}

// Process number 1, as in a container, gets no signal from the kernel that it does not handle: nobody could end it in order.
void end_by_signals_as_first_process() {
  if (getpid() != 1) return;
  for (const int number : {SIGTERM, SIGINT, SIGHUP})
    std::signal(number, [](int by) { _exit(128 + by); });
}

// `faro help`, `faro help COMMAND …`: as --help there.
std::vector<const char*> with_help_as_flag(int argc, char** argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back("--help");
  }
  return words;
}

// CLI11 would name them from the last to the first.
int report_unexpected(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  say_error(fmt::format("faro: unexpected argument{}: {}\nRun with --help for more information.\n",
                        words.size() == 1 ? "" : "s", fmt::join(words, " ")));
  return kExitUsage;
}

int run(int argc, const char* const* argv) {
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
    say_error(
        fmt::format("faro: unknown command '{}': bench, plan, doctor, stat, top, explain, config, "
                    "simulate or soak\n",
                    argv[1]));
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    return report_unexpected(app);
  } catch (const CLI::ParseError& error) {
    // --help and --version come here too, with a code of 0.
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  end_by_signals_as_first_process();
  try {
    const std::vector<const char*> words = with_help_as_flag(argc, argv);
    return written(run(static_cast<int>(words.size()), words.data()));
  } catch (const std::exception& error) {
    say_error(fmt::format("faro: {}\n", error.what()));
    return kExitFailed;
  }
}
