#include "c/errors.h"

#include <fmt/format.h>

#include "base/return_if_error.h"
#include "c/sized.h"
#include "c/thread_value.h"

namespace faro::c {
namespace {

const Status kNoMemory(Code::resource_limit, "the process has no memory left for this call");
const Status kUnexpected(Code::internal_error, "an exception was thrown in a call");

ThreadValue<Status> last;

}  // namespace

const Status& no_memory() noexcept { return kNoMemory; }
const Status& unexpected_exception() noexcept { return kUnexpected; }

faro_code remember(Status status) noexcept {
  const auto code = static_cast<faro_code>(status.code());
  if (!status.ok()) last.set(std::move(status));
  return code;
}
Status read_failure(faro_code code, const char* message, Status& failure) {
  if (code_name(static_cast<Code>(code)) == "unknown")
    return Status(Code::invalid_argument, "there is no code " + std::to_string(code));
  failure = Status(static_cast<Code>(code), message == nullptr ? "" : message);
  return Status::Ok();
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

using namespace faro::c;

faro_code faro_last_error(faro_error* error) {
  if (error == nullptr || error->size < kLeastSize) return FARO_CODE_INVALID_ARGUMENT;
  const faro::Status* const has_failed = last.get();
  const faro::Status failure = has_failed == nullptr ? faro::Status() : *has_failed;
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

faro_code faro_set_last_error(const faro_error* error) {
  return coded([&]() -> faro::Status {
    faro_error given;
    FARO_RETURN_IF_ERROR(read(error, "error", given));
    faro::Status failure;
    FARO_RETURN_IF_ERROR(read_failure(given.code, given.message, failure));
    if (given.has_node != 0) failure = failure.of_node(given.node);
    if (given.has_query != 0) failure = failure.of_query(query_of(given.query));
    if (given.has_stage != 0) failure = failure.of_stage(given.stage);
    remember(std::move(failure));
    return faro::Status::Ok();
  });
}
