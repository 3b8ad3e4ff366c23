// Operation: what one call of a worker's API is about, and what becomes of it where memory or overflow is exhausted.
#pragma once

#include <cstdint>
#include <memory>

#include "faro/outcome.h"
#include "faro/status.h"
#include "shuffle/operation/blocked_on.h"
#include "shuffle/operation/worker_context.h"

namespace faro::shuffle {

/// A worker has one, which every call begins anew.
///
/// Threads: the worker.
class Operation {
 public:
  explicit Operation(const WorkerContext& worker) : worker_(worker), blocked_on_(worker) {}

  void begin() noexcept {
    blocked_on_.nothing();
    query_ = nullptr;
    status_ = nullptr;
  }
  /// From here on it is about `query`: if there is no memory for it, that fails, and `status` says so.
  void is_about(Query& query, Status* status) noexcept {
    query_ = &query;
    status_ = status;
  }

  /// The calls within a condition are over: what fails from here on is told by the next one of them, and not by what waits.
  void condition_is_over() noexcept { status_ = nullptr; }

  BlockedOn& blocked_on() noexcept { return blocked_on_; }

  /// There is no memory for something small: the query that this is about fails, or, if it is about none,
  /// the one that has most in overflow. Answers failed if `status` says so, else would_wait.
  Outcome lack_memory() noexcept;

  /// Overflow is full: fails the query that uses most, or `query` if it is above its own limit. Answers
  /// failed if that is `query`, else would_wait.
  Outcome overflow_exhausted(const std::shared_ptr<Query>& query, uint64_t bytes,
                             const Status& cause);

 private:
  const WorkerContext& worker_;
  BlockedOn blocked_on_;
  Query* query_ = nullptr;
  Status* status_ = nullptr;
};

}  // namespace faro::shuffle
