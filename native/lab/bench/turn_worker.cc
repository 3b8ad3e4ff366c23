#include "lab/bench/turn_worker.h"

#include "base/return_if_error.h"
#include "lab/bench/node_life.h"

namespace faro::bench {

Status TurnWorker::run(const QueryId& query) {
  FARO_RETURN_IF_ERROR(open(query));
  while (!over()) {
    if (!turn() && worker_.wait_until([this] { return turn(); }) != Outcome::done) {
      return Status(Code::internal_error, "the worker could not wait");
    }
  }
  FARO_RETURN_IF_ERROR(close());
  return end_query(worker_, query);
}

}  // namespace faro::bench
