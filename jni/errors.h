// How a native method says what went wrong: it returns the negative code, Java asks for the rest
// (NativeLibrary.lastError) and builds the exception. faro_last_error keeps it meanwhile.
#pragma once

#include <jni.h>

#include "faro/c.h"

namespace faro::jni {

/// The calling thread's last failure; its message is valid until the next one.
inline faro_error last_error() {
  faro_error error{};
  error.size = sizeof error;
  (void)faro_last_error(&error);  // has its size
  return error;
}

/// The negative code of the calling thread's last failure, for where a call did not answer a code.
inline jint failed() {
  const faro_code code = last_error().code;
  // A failure without a cause must not look like success.
  return code == FARO_CODE_OK ? -FARO_CODE_INTERNAL_ERROR : -code;
}

/// Makes this the calling thread's last failure, and answers the negative code.
inline jint fail(faro_code code, const char* message) {
  faro_error error{};
  error.size = sizeof error;
  error.code = code;
  error.message = message;
  (void)faro_set_last_error(&error);  // there is such a code
  return -code;
}
inline jint session_closed() { return fail(FARO_CODE_SESSION_CLOSED, "the session was closed"); }
inline jint shuffle_closed() { return fail(FARO_CODE_CLOSED, "the shuffle was closed"); }
inline jint endpoint_closed() { return fail(FARO_CODE_CLOSED, "the endpoint was closed"); }

/// What a call of faro/c.h has answered, as Java reads it: zero or the negative code.
inline jint result(faro_code code) { return -code; }
/// The number of an outcome, or for `failed` the negative code.
inline jint answer(faro_outcome outcome) {
  return outcome == FARO_OUTCOME_FAILED ? failed() : outcome;
}

}  // namespace faro::jni
