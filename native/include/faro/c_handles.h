// Handles of faro/c.h for C++ objects, for programs that use both: the native side of Java, for one.
#pragma once

#include <memory>

#include "faro/c.h"
#include "faro/endpoint.h"
#include "faro/session.h"

#pragma GCC visibility push(default)

namespace faro {

/// A handle that owns the session, which stays where it is: for faro_session_destroy. Its workers are those that
/// faro_session_worker gives. Throws: std::bad_alloc; the session is closed then. Threads: any.
faro_session* handle_of(std::unique_ptr<Session> session);
/// The same of an endpoint, for faro_endpoint_destroy. Its pollers are those that faro_endpoint_poller gives.
faro_endpoint* handle_of(std::unique_ptr<Endpoint> endpoint);

}  // namespace faro

#pragma GCC visibility pop
