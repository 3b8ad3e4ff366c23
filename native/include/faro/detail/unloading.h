// For a binding that may be unloaded.
#pragma once

#pragma GCC visibility push(default)

namespace faro::detail {

/// Whether no thread of the library runs any more, so that its code may go. Blocks: never for long;
/// it waits for threads that are at their end. Threads: any.
bool all_threads_are_over() noexcept;

/// Unloads what this library has loaded. It is for a binding that unloads this library right
/// afterwards, and is called when nothing of the library is in use any more.
void prepare_to_unload() noexcept;

}  // namespace faro::detail

#pragma GCC visibility pop
