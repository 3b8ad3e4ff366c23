// What the natives of a shuffle and of its two sides answer.
#pragma once

#include <jni.h>

#include "faro/c.h"
#include "faro/outcome.h"
#include "jni/errors.h"
#include "jni/objects.h"

namespace faro::jni {

inline jint closed() { return fail(Code::closed, "the shuffle was closed"); }

inline jint answer(const ShuffleState& state, Outcome outcome) {
  return result(outcome, [&] {
    const Status& refused = state.worker->refused;
    return refused.ok() ? failure_of_c() : refused;
  });
}

/// Whether the query has not failed; else failure_of_c tells the cause. A call that was refused does not end a query.
inline bool query_lives(const ShuffleState& state) {
  const auto code = static_cast<Code>(faro_shuffle_status(state.shuffle.get()));
  return code == Code::ok || category_of(code) == Category::operation;
}

}  // namespace faro::jni
