// What the natives of a shuffle and of its two sides answer.
#pragma once

#include <jni.h>

#include "faro/shuffle.h"
#include "jni/errors.h"
#include "jni/objects.h"

namespace faro::jni {

inline jint closed() { return fail(Code::closed, "the shuffle was closed"); }

inline jint answer(const ShuffleState& state, Outcome outcome) {
  return result(outcome, [&] {
    const Status& refused = state.worker->refused;
    return refused.ok() ? state.shuffle.status() : refused;
  });
}

inline jlong address_of(const void* memory) { return reinterpret_cast<jlong>(memory); }

}  // namespace faro::jni
