// Lines to standard error that never wait for whoever reads it.
#pragma once

#include <string_view>

namespace faro::base {

/// Writes a line, to which it adds the end, or drops it if that would have to wait: where stderr is a pipe, a socket or a terminal
/// that nobody reads. How many were dropped stands before the next one that there is room for. The descriptor's flags are left
/// alone, for other processes share them. Threads: any. Blocks: never; a file on a slow disk may.
void write_to_standard_error(std::string_view line) noexcept;

}  // namespace faro::base
