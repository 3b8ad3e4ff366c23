#include "jni/errors.h"

#include <utility>

namespace faro::jni {
namespace {

thread_local std::string last_message;

}  // namespace

jint fail(const Status& status) {
  // `failed` without a cause would be a defect of the layers below; it must not look like success.
  if (status.ok()) return fail(Code::internal_error, "an operation failed without a cause");
  return fail(status.code(), std::string(status.message()));
}

jint fail(Code code, std::string message) {
  last_message = std::move(message);
  return -static_cast<jint>(code);
}

const std::string& last_error() noexcept { return last_message; }

}  // namespace faro::jni
