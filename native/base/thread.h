// Threads of the library's own.
#pragma once

#include <functional>
#include <thread>

#include "faro/status.h"

namespace faro::base {

/// Starts a thread. It is born with every signal blocked: signals are the engine's business, and a
/// JVM's. `name` is what tools show; at most 15 characters.
/// Errors: system_error, naming the thread: the system has no more.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

/// Starts a thread, as start_thread does, that nobody waits for: it ends by itself, or with the
/// process. It counts in faro/detail/unloading.h. Errors: system_error, naming the thread.
Status start_detached(const char* name, std::function<void()> body);
/// For a thread that start_thread has started and that is about to end: it destroys what held it.
void detach_self(std::thread self);

}  // namespace faro::base
