#include "c/errors.h"

#include <fmt/format.h>

#include "c/sized.h"
#include "c/thread_value.h"
#include "faro/c_handles.h"

namespace faro::c {
namespace {

const Status kNoMemory(Code::resource_limit, "the process has no memory left for this call");
const Status kUnexpected(Code::internal_error, "an exception was thrown in a call");

const Status kNone;

ThreadValue<Status> last;

}  // namespace

const Status& no_memory() noexcept { return kNoMemory; }
const Status& unexpected_exception() noexcept { return kUnexpected; }

faro_code remember(Status status) noexcept {
  const auto code = static_cast<faro_code>(status.code());
  if (!status.ok()) last.set(std::move(status));
  return code;
}
const Status& last_failure() noexcept {
  const Status* const failure = last.get();
  return failure == nullptr ? kNone : *failure;
}

faro_outcome Answer::tell() && noexcept {
  if (outcome_ == Outcome::failed) remember(why_.ok() ? kUnexpected : std::move(why_));
  return static_cast<faro_outcome>(outcome_);
}

Result<Wait> wait_of(int64_t wait_ns) {
  if (wait_ns == FARO_WAIT_NONE) return Wait::none();
  if (is_wait(wait_ns)) return Wait::at_most(std::chrono::nanoseconds(wait_ns));
  return Status(Code::invalid_argument,
                fmt::format("wait_ns = {}: a time limit is not negative", wait_ns));
}

}  // namespace faro::c

namespace faro {

void remember_failure(Status status) noexcept { (void)c::remember(std::move(status)); }
const Status& last_failure() noexcept { return c::last_failure(); }

}  // namespace faro

using namespace faro::c;

faro_code faro_last_error(faro_error* error) {
  if (error == nullptr || error->size < kLeastSize) return FARO_CODE_INVALID_ARGUMENT;
  const faro::Status& failure = last_failure();
  faro_error told{};
  told.code = static_cast<faro_code>(failure.code());
  told.category = static_cast<faro_category>(failure.category());
  told.has_node = failure.node().has_value() ? 1 : 0;
  told.has_query = failure.query().has_value() ? 1 : 0;
  told.has_stage = failure.stage().has_value() ? 1 : 0;
  told.node = failure.node().value_or(0);
  told.stage = failure.stage().value_or(0);
  told.query = query_of(failure.query().value_or(faro::QueryId{}));
  told.message =
      failure.ok() ? "" : failure.message().data();  // of a std::string: it ends with a zero
  fill(*error, told);
  return FARO_CODE_OK;
}
