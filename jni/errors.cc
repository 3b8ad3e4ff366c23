#include "jni/errors.h"

#include <utility>

namespace faro::jni {
namespace {

thread_local Status last_status;

}  // namespace

jint fail(const Status& status) {
  // `failed` without a cause would be a defect of the layers below; it must not look like success.
  if (status.ok()) return fail(Code::internal_error, "an operation failed without a cause");
  last_status = status;
  return -static_cast<jint>(status.code());
}

jint fail(Code code, std::string message) { return fail(Status(code, std::move(message))); }

Status failure_of_c() {
  faro_error error{};
  error.size = sizeof error;
  (void)faro_last_error(&error);
  Status status(static_cast<Code>(error.code), error.message);
  if (error.has_node != 0) status = status.of_node(error.node);
  if (error.has_query != 0) {
    status = status.of_query({.counter = error.query.counter,
                              .incarnation = error.query.incarnation,
                              .issuer = error.query.issuer});
  }
  return error.has_stage != 0 ? status.of_stage(error.stage) : status;
}

const Status& last_error() noexcept { return last_status; }

}  // namespace faro::jni
