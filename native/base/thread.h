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

}  // namespace faro::base
