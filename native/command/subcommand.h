// What all sub-commands do to be added, and flags that several of them have.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <type_traits>

#include "command/exit_code.h"

namespace faro::command {

/// A sub-command, and what its flags are read into. Both live as long as what it was added to.
template <class Flags>
struct Subcommand {
  CLI::App& command;
  Flags& flags;
};

/// Adds a sub-command. When it is chosen, and none of its own is, `exit_code` gets what `run` returns.
template <class Flags>
Subcommand<std::remove_const_t<Flags>> add_subcommand(CLI::App& to, int& exit_code,
                                                      const char* name, const char* what,
                                                      int (*run)(Flags& flags)) {
  CLI::App* const command = to.add_subcommand(name, what);
  auto flags = std::make_shared<std::remove_const_t<Flags>>();
  command->footer(kExitCodeHelp);
  command->callback([command, flags, run, &exit_code] {
    if (command->get_subcommands().empty()) exit_code = run(*flags);
  });
  return {*command, *flags};
}

/// A flag for a number from `least` to `most`; the help does not repeat these.
template <class Number>
CLI::Option* add_number(CLI::App& command, const char* name, Number& number, const char* help,
                        std::type_identity_t<Number> least, std::type_identity_t<Number> most) {
  return command.add_option(name, number, help)
      ->check(CLI::Range(least, most).description(""))
      ->type_name("N");
}

}  // namespace faro::command
