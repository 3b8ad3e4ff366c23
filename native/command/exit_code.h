// The exit codes of the programs `faro` and `faro-lab`.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/printable.h"
#include "faro/status.h"

namespace faro::command {

enum ExitCode : int {
  kExitOk = 0,       ///< done; for checks: everything fits, or works
  kExitFailed = 1,   ///< a wrong result, a failure while running, or a check that fails
  kExitUsage = 2,    ///< unknown or conflicting flags or settings
  kExitMachine = 3,  ///< this machine cannot: a limit, a missing transport, a port in use
  kExitWaits = 4,    ///< `explain`: something has waited for as long as it was watched
};

/// What `--help` says about them.
inline constexpr char kExitCodeHelp[] =
    "Exit codes: 0 done (checks: fits, works), 1 wrong result, failure or a check that says no,\n"
    "2 unknown or conflicting flags or settings, 3 this machine cannot (limits, ports, "
    "transports).";
/// What `faro explain --help` says after that, and `faro --help`.
inline constexpr char kWaitsHelp[] = "\n4 explain: something waits.";

/// The exit code for an error.
constexpr ExitCode exit_code_of(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return kExitOk;
    case Code::invalid_argument:
    case Code::config_invalid:
      return kExitUsage;
    case Code::resource_limit:
    case Code::address_in_use:
    case Code::transport_unavailable:
      return kExitMachine;
    default:
      return kExitFailed;
  }
}

/// On stderr. What cannot be written there is lost: there is nowhere else to say it, and the exit code tells.
inline void say_error(const std::string& text) noexcept {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Prints "COMMAND: …" on stderr, of "faro plan" and the like; returns the exit code that belongs to the error.
inline int report_error(std::string_view command, const Status& status) {
  say_error(fmt::format("{}: {}\n", command,
                        base::printable(std::string(status.message()), base::LineBreaks::kept)));
  return exit_code_of(status.code());
}

}  // namespace faro::command
