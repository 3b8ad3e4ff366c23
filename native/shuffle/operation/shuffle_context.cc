#include "shuffle/operation/shuffle_context.h"

#include <utility>

#include "base/error.h"

namespace faro::shuffle {

Outcome ShuffleSide::enter() {
  if (Status status = shuffle_.enter_worker(); !status.ok()) return fail(std::move(status));
  const std::shared_ptr<Query>& query = shuffle_.query();
  shuffle_.operation().is_about(*query, this);
  if (query->failed()) {
    shuffle_.drop_rows();
    return fail(query->cause());
  }
  return Outcome::done;
}

Outcome ShuffleSide::fail(Status status) noexcept {
  status_ = std::move(status);
  shuffle_.failed_last_ = this;
  return Outcome::failed;
}

Status ShuffleContext::lack_memory() noexcept {
  worker().queries.fail_for_memory(*query_);
  return worker().queries.no_memory();
}

Status ShuffleContext::name_format(RowFormat& known, std::string_view format,
                                   std::string_view what) const {
  RowFormat said = RowFormat::of(format);
  if (!known.agrees(said)) {
    return base::error(Code::invalid_argument, "stage {}: worker {} {} rows as {}, not as {}",
                       spec_.stage, worker().number, what, known.beside(said), said.beside(known));
  }
  if (said.digest != 0) known = std::move(said);
  return Status::Ok();
}

}  // namespace faro::shuffle
