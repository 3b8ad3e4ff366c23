#include "lab/bench/turn_worker.h"

#include <string>

namespace faro::bench {

Status TurnWorker::run(const QueryId& query) {
  FARO_RETURN_IF_ERROR(open(query));
  while (!over()) {
    if (!turn() && worker_.wait_until([this] { return turn(); }) != Outcome::done) {
      return Status(Code::internal_error, "the worker could not wait");
    }
  }
  FARO_RETURN_IF_ERROR(close());
  Status cause;
  const Outcome outcome = worker_.end_query(query, &cause);
  if (outcome == Outcome::done || !cause.ok()) return cause;
  return Status(Code::internal_error,
                std::string("the end of the query answered ") + outcome_name(outcome));
}

}  // namespace faro::bench
