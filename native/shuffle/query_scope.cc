#include "faro/query_scope.h"

#include <utility>

#include "faro/session.h"

namespace faro {

QueryScope::~QueryScope() {
  if (worker_ == nullptr) return;
  const bool by_exception = std::uncaught_exceptions() > exceptions_;
  (void)fail(
      Status(Code::query_failed, by_exception ? "an exception has ended its part of the query"
                                              : "it has left the query before its end"),
      Wait::none());
}

// What waits is to be repeated; else its part has ended, however it has.
Outcome QueryScope::ended(Outcome outcome) noexcept {
  const bool has_ended =
      outcome == Outcome::done ||
      (outcome == Outcome::failed && worker_->status().code() != Code::wrong_state);
  if (has_ended) worker_ = nullptr;
  return outcome;
}

Outcome QueryScope::end(Wait wait) {
  return worker_ == nullptr ? Outcome::done : ended(worker_->end_query(query_, wait));
}

Outcome QueryScope::fail(const Status& why, Wait wait) {
  return worker_ == nullptr ? Outcome::done : ended(worker_->end_query(query_, why, wait));
}

}  // namespace faro
