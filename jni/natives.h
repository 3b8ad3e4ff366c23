// The native methods of each Java class, for the one registration in native_library.cc.
#pragma once

#include <jni.h>

#include <span>

namespace faro::jni {

inline constexpr jint kJniVersion = JNI_VERSION_10;

/// The natives of one Java class. A table's signatures are checked by the JVM when it is registered:
/// classes of another version fail then, with the method's name.
struct Natives {
  const char* class_name;
  std::span<const JNINativeMethod> methods;
};

extern const Natives kAggregationNatives;
extern const Natives kCancellationNatives;
extern const Natives kEndpointNatives;
extern const Natives kMemorySenderNatives;
extern const Natives kNativeLogNatives;
extern const Natives kNativePollerNatives;
extern const Natives kNodeChangesNatives;
extern const Natives kSessionNatives;
extern const Natives kSessionConfigNatives;
extern const Natives kSessionEventsNatives;
extern const Natives kNativeMetricsNatives;
extern const Natives kShuffleNatives;
extern const Natives kShuffleReceiverNatives;
extern const Natives kShuffleSenderNatives;
extern const Natives kWorkerNatives;

/// For JNINativeMethod, which wants non-const pointers.
template <typename Function>
JNINativeMethod method(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace faro::jni
