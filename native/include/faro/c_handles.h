// Handles of faro/c.h for C++ objects, for programs that use both. The native side of Java is one.
#pragma once

#include "faro/detail/cxx20.h"

#include <memory>
#include <string>

#include "faro/c.h"
#include "faro/endpoint.h"
#include "faro/session.h"

#pragma GCC visibility push(default)

namespace faro {

/// A handle that owns the session, which stays where it is: for faro_session_destroy. Its workers
/// are those that faro_session_worker gives. Throws: std::bad_alloc; the session is closed then.
/// Threads: any.
faro_session* handle_of(std::unique_ptr<Session> session);
/// A handle that owns the endpoint, which stays where it is: for faro_endpoint_destroy. Its pollers
/// are those that faro_endpoint_poller gives. Throws: std::bad_alloc; the endpoint is closed then.
/// Threads: any.
faro_endpoint* handle_of(std::unique_ptr<Endpoint> endpoint);

/// What faro_last_error tells the calling thread from now on; an ok status changes nothing.
/// Threads: any.
void remember_failure(Status status) noexcept;
/// What faro_last_error tells the calling thread, as a Status, which is ok if nothing has failed.
/// Valid until the thread's next call. Threads: any.
const Status& last_failure() noexcept;
/// Whether a transport was loaded from this path (verbs.module): then it is in use, also when the
/// path is gone. Threads: any.
bool has_loaded(const std::string& path);
/// Unloads what this library has loaded. It is for a binding that unloads this library right
/// afterwards, and is called when nothing of the library is in use any more.
void prepare_to_unload() noexcept;

}  // namespace faro

#pragma GCC visibility pop
