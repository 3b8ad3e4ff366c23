// How a native method says what went wrong: it returns the negative code, Java fetches the rest and builds the
// exception.
#pragma once

#include <jni.h>

#include <string>

#include "faro/c.h"
#include "faro/outcome.h"
#include "faro/status.h"

namespace faro::jni {

/// Remembers the error for this thread and returns the negative code.
/// Threads: any; it is the calling thread's, until its next failure.
jint fail(const Status& status);
jint fail(Code code, std::string message);

/// What the calling thread's last call of faro/c.h that failed tells.
Status failure_of_c();

/// Zero, or fail(status).
inline jint result(const Status& status) { return status.ok() ? 0 : fail(status); }

/// Zero, or the negative code of what the call of faro/c.h that answered `code` has told.
inline jint result(faro_code code) { return code == FARO_CODE_OK ? 0 : fail(failure_of_c()); }

inline Outcome outcome_of(faro_outcome outcome) { return static_cast<Outcome>(outcome); }

/// The calling thread's last failure.
const Status& last_error() noexcept;

/// An outcome as Java reads it: its number, or for `failed` the negative code of `status`.
template <typename StatusOf>
jint result(Outcome outcome, StatusOf&& status_of) {
  return outcome == Outcome::failed ? fail(status_of()) : static_cast<jint>(outcome);
}

}  // namespace faro::jni
