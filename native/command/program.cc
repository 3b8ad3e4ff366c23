#include "command/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

#include "command/exit_code.h"
#include "command/version.h"

namespace faro::command {
namespace {

// What was printed is written before the exit code is chosen: a full disk, or a pipe whose reader
// has gone, is a failure.
int written(const Program& program, int exit_code) {
  errno = 0;
  const bool is_written = std::cout.flush().good() && std::fflush(stdout) == 0;
  if (is_written && std::ferror(stdout) == 0) return exit_code;
  say_error(fmt::format("{}: the output could not be written{}{}\n", program.name,
                        errno == 0 ? "" : ": ", errno == 0 ? "" : std::strerror(errno)));
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
int report_unexpected(const Program& program, const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  say_error(fmt::format("{}: unexpected argument{}: {}\nRun with --help for more information.\n",
                        program.name, words.size() == 1 ? "" : "s", fmt::join(words, " ")));
  return kExitUsage;
}

// CLI11 alone would only say that a sub-command is required.
int report_unknown(const Program& program, CLI::App& app, std::string_view word) {
  if (std::ranges::find(program.elsewhere, word) != program.elsewhere.end()) {
    say_error(
        fmt::format("{0}: {1} is a command of {2}: {2} {1}\n", program.name, word, program.other));
    return kExitUsage;
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string last = names.back();
  names.pop_back();
  say_error(fmt::format("{}: unknown command '{}': {} or {}\n", program.name, word,
                        fmt::join(names, ", "), last));
  return kExitUsage;
}

int run(const Program& program, int argc, const char* const* argv) {
  CLI::App app{std::string(program.what)};
  app.name(std::string(program.name));
  app.set_version_flag("--version", version_text(program.name),
                       "Print version, commit and compiler");
  app.get_formatter()->column_width(28);
  app.require_subcommand(1);
  app.footer(program.codes);
  int exit_code = kExitOk;
  for (const Program::AddCommand add : program.commands) add(app, exit_code);
  const auto is_first_word = [&](const CLI::App* command) {
    return command->get_name() == argv[1];
  };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_first_word).empty())
    return report_unknown(program, app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    return report_unexpected(program, app);
  } catch (const CLI::ParseError& error) {
    // --help and --version come here too, with a code of 0.
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  end_by_signals_as_first_process();
  try {
    const std::vector<const char*> words = with_help_as_flag(argc, argv);
    return written(program, run(program, static_cast<int>(words.size()), words.data()));
  } catch (const std::exception& error) {
    say_error(fmt::format("{}: {}\n", program.name, error.what()));
    return kExitFailed;
  }
}

}  // namespace faro::command
