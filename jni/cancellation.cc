// io.faro.Cancellation
#include <jni.h>

#include <array>

#include "faro/c.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

jlong create(JNIEnv*, jclass) {
  return cancellations().add({faro_cancellation_create(), faro_cancellation_destroy});
}

// Nothing happens if it was destroyed.
void cancel(JNIEnv*, jclass, jlong handle) {
  if (const auto cancellation = cancellations().find(handle))
    (void)faro_cancellation_cancel(cancellation.get());
}

// Calls that have it already keep it.
void destroy(JNIEnv*, jclass, jlong handle) { cancellations().remove(handle); }

const std::array kMethods{method("create", "()J", create), method("cancel", "(J)V", cancel),
                          method("destroy", "(J)V", destroy)};

}  // namespace

const Natives kCancellationNatives{"io/faro/Cancellation", kMethods};

}  // namespace faro::jni
