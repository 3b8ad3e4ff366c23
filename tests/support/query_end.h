// end_query: ends a worker's part of a query, and says why the query has failed.
#pragma once

#include "faro/session.h"

namespace faro::test {

/// Ends a query as Worker::end_query does. `cause`: why it failed, else ok.
inline Outcome end_query(Worker& worker, const QueryId& query, const Status& failure, Status& cause,
                         Wait wait = Wait::forever()) {
  const Outcome outcome = worker.end_query(query, failure, wait);
  cause = outcome == Outcome::failed ? worker.status() : Status::Ok();
  return outcome;
}
inline Outcome end_query(Worker& worker, const QueryId& query, Status& cause,
                         Wait wait = Wait::forever()) {
  return end_query(worker, query, Status::Ok(), cause, wait);
}

}  // namespace faro::test
