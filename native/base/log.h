// Logging. Levels are defined by volume, not by severity alone:
//   error    a session or process cannot continue; a handful in its lifetime
//   warning  a peer or query was lost, with its first cause; one line per cause
//   info     once per session: what was chosen and why
//   debug    once per link, query or shuffle; never per frame or row
// The data path never logs; it counts.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "faro/log.h"

namespace faro::base {

/// Whether a line of this level would go anywhere. Threads: any. Blocks: never.
bool log_enabled(LogLevel level) noexcept;

/// Hands one finished line to the sink (see faro/log.h). Threads: any. May block on the sink.
void log_line(LogLevel level, std::string_view line) noexcept;

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace faro::base
