#include "jni/errors.h"

#include <utility>

#include "faro/c_handles.h"

namespace faro::jni {

jint fail(const Status& status) {
  // `failed` without a cause would be a defect of the layers below; it must not look like success.
  if (status.ok()) return fail(Code::internal_error, "an operation failed without a cause");
  remember_failure(status);
  return -static_cast<jint>(status.code());
}

jint fail(Code code, std::string message) { return fail(Status(code, std::move(message))); }

Status failure_of_c() { return last_failure(); }

const Status& last_error() noexcept { return last_failure(); }

}  // namespace faro::jni
