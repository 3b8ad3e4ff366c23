// Where Faro's log lines go.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstdint>
#include <functional>
#include <string_view>

#pragma GCC visibility push(default)

namespace faro {

/// Levels by volume: error (a handful in a life), warning (one line per lost peer or failed query),
/// info (a few lines per session), debug (a line per link, query or shuffle). Nothing per row.
enum class LogLevel : int32_t { debug, info, warning, error, off };

/// Takes one line without a line end. It is called from any thread, also the network thread: it
/// must return quickly and must not call back into Faro. An exception it throws is swallowed.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// Replaces the sink (an empty function restores the default: stderr with time and level). The
/// default one waits for nobody: lines that a pipe, a socket or a terminal does not take at once
/// are dropped, and counted before the next one.
/// Threads: any; lines being written by another thread may still go to the old sink.
void set_log_sink(LogSink sink);

/// Lines below this level are dropped. Default: warning, or the environment's FARO_LOG_LEVEL.
void set_log_level(LogLevel level) noexcept;

}  // namespace faro

#pragma GCC visibility pop
