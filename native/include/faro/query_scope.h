// QueryScope: a worker's part in a query, which ends with the scope that it is in.
#pragma once

#include "faro/detail/cxx20.h"

#include <exception>

#include "faro/outcome.h"
#include "faro/query.h"
#include "faro/status.h"
#include "faro/wait.h"

#pragma GCC visibility push(default)

namespace faro {

class Worker;

/// Ends a worker's part in a query on every path out of a scope: by `end` where all went well, by
/// `fail` where the part knows why it cannot go on; and by its destructor on every other path, by
/// which the query fails on all participants. Declare it before the shuffles of the query, so that
/// these are closed first.
///
///   QueryScope part(worker, query);
///   Shuffle shuffle = ...;
///   if (...) return;               // fails the query: "worker 3 failed: it left the query early"
///   shuffle.close();
///   return part.end();
///
/// Threads: those of the worker.
class QueryScope {
 public:
  QueryScope(Worker& worker, const QueryId& query) noexcept
      : worker_(&worker), query_(query), exceptions_(std::uncaught_exceptions()) {}
  QueryScope(const QueryScope&) = delete;
  QueryScope& operator=(const QueryScope&) = delete;
  /// Fails the query, unless its part has ended. Blocks: never.
  ~QueryScope();

  /// This worker's part is over; its shuffles of the query must be closed. It answers as
  /// Worker::end_query does, and is to be repeated after would_wait, deadline and holding.
  Outcome end(Wait wait = Wait::forever());
  /// This worker's part has failed. It answers as Worker::end_query with a failure does.
  Outcome fail(const Status& why, Wait wait = Wait::forever());

 private:
  Outcome ended(Outcome outcome) noexcept;

  Worker* worker_;  // null: its part has ended
  QueryId query_;
  int exceptions_;  // under way when it was made
};

}  // namespace faro

#pragma GCC visibility pop
