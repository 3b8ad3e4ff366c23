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

const Status& last_error() noexcept { return last_status; }

}  // namespace faro::jni
