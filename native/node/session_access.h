// SessionAccess: what is behind a Session; for the simulation, tests and the C ABI.
#pragma once

#include <memory>

#include "faro/session.h"
#include "node/node_core.h"

namespace faro {

class SessionAccess {
 public:
  static Result<std::unique_ptr<Session>> open(const base::Settings& settings,
                                               node::NodeEnvironment environment);
  static node::NodeCore& core(Session& session) { return *session.core_; }
  /// Takes the descriptor of a socket, which is empty then.
  static int release(ListeningSocket& socket) noexcept;
};

}  // namespace faro
