#include "shuffle/operation/shuffle_context.h"

#include "base/error.h"

namespace faro::shuffle {

Outcome ShuffleContext::enter() {
  if (Status status = ownership_.enter(); !status.ok()) return fail(status);
  operation_.is_about(*query_, &status_);
  if (query_->failed()) {
    drop_rows();
    return fail(query_->cause());
  }
  return Outcome::done;
}

Outcome ShuffleContext::fail(const Status& status) {
  status_ = status;
  return Outcome::failed;
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

Status ShuffleContext::lack_memory() noexcept {
  worker().queries.fail_for_memory(*query_);
  return status_ = worker().queries.no_memory();
}

}  // namespace faro::shuffle
