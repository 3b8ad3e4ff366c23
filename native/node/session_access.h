// SessionAccess: opens a Session with everything passed in; for the simulation and for tests.
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
  /// Takes the descriptor of a listener, which is empty then.
  static int release(ListeningSocket& listener) noexcept;
};

}  // namespace faro
