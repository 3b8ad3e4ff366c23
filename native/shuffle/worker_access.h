// WorkerAccess: what is behind a Worker; for operators.
#pragma once

#include "faro/session.h"
#include "shuffle/local_worker.h"

namespace faro {

class WorkerAccess {
 public:
  /// Null: the session has no such worker.
  static shuffle::LocalWorker* core(Worker& worker) { return worker.core_; }
  /// Errors: invalid_argument, if it has none.
  static Status check_exists(const Worker& worker) { return worker.check_exists(); }
};

}  // namespace faro
