// io.faro.NativeLibrary: what the JVM looks up, the build id, and the one registration of all natives.
#include <dlfcn.h>
#include <jni.h>

#include <array>
#include <string>

#include "build_info/build_info.h"
#include "faro/c.h"
#include "faro/detail/unloading.h"
#include "jni/callbacks.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"

namespace faro::jni {
namespace {

bool register_natives(JNIEnv* env, const Natives& natives) {
  const jclass target = env->FindClass(natives.class_name);
  if (target == nullptr) return false;
  const jint error = env->RegisterNatives(target, natives.methods.data(),
                                          static_cast<jint>(natives.methods.size()));
  env->DeleteLocalRef(target);
  return error == JNI_OK;
}

void unregister_natives(JNIEnv* env, const Natives& natives) {
  if (const jclass target = env->FindClass(natives.class_name); target != nullptr) {
    env->UnregisterNatives(target);
    env->DeleteLocalRef(target);
  } else {
    env->ExceptionClear();
  }
}

jbyteArray build_id(JNIEnv* env, jclass) {
  return bytes_of(env, std::string(build_info::kVersion) + "-" + build_info::kCommit);
}

jbyteArray last_error_text(JNIEnv* env, jclass) { return bytes_of(env, last_error().message); }

// Writes what the last error is about: the node and the stage, -1 if there is none, and the query, counter 0 if
// there is none.
void last_error_place(JNIEnv* env, jclass, jlongArray to) {
  const faro_error error = last_error();
  const std::array<jlong, 5> place{
      error.has_node != 0 ? jlong{error.node} : -1, error.has_stage != 0 ? jlong{error.stage} : -1,
      static_cast<jlong>(error.query.counter), static_cast<jlong>(error.query.incarnation),
      static_cast<jlong>(error.query.issuer)};
  env->SetLongArrayRegion(to, 0, static_cast<jsize>(place.size()), place.data());
}

jboolean has_loaded_path(JNIEnv* env, jclass, jbyteArray path) {
  return faro_has_loaded(text_of(env, path).c_str()) != 0 ? JNI_TRUE : JNI_FALSE;
}

jboolean bind(JNIEnv* env, jclass) {
  const std::array classes{kSessionConfigNatives, kAggregationNatives,   kCancellationNatives,
                           kSessionNatives,       kNativeMetricsNatives, kWorkerNatives,
                           kShuffleNatives,       kShuffleSenderNatives, kShuffleReceiverNatives,
                           kNativeLogNatives,     kSessionEventsNatives, kEndpointNatives,
                           kNativePollerNatives,  kNodeChangesNatives,   kMemorySenderNatives};
  for (size_t i = 0; i < classes.size(); ++i) {
    if (register_natives(env, classes[i])) continue;
    const jthrowable why = env->ExceptionOccurred();
    env->ExceptionClear();
    while (i-- > 0) unregister_natives(env, classes[i]);
    if (why != nullptr) env->Throw(why);
    return JNI_FALSE;
  }
  return JNI_TRUE;
}

const std::array kMethods{
    method("buildId", "()[B", build_id), method("lastError", "()[B", last_error_text),
    method("lastErrorPlace", "([J)V", last_error_place),
    method("hasLoaded", "([B)Z", has_loaded_path), method("bind", "()Z", bind)};
const Natives kNatives{"io/faro/NativeLibrary", kMethods};

}  // namespace
}  // namespace faro::jni

// Registers only what NativeLibrary needs to check the build id; it then binds the rest. A failure
// leaves nothing behind: the JVM unloads the library again, and its natives with it.
extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  void* env = nullptr;
  if (vm->GetEnv(&env, faro::jni::kJniVersion) != JNI_OK) return JNI_ERR;
  auto* const jni = static_cast<JNIEnv*>(env);
  if (!faro::jni::find_callbacks(jni)) return JNI_ERR;
  return faro::jni::register_natives(jni, faro::jni::kNatives) ? faro::jni::kJniVersion : JNI_ERR;
}

// The class loader was collected, and the JVM is about to unload this library. Each loader has a copy of it, so it is not linked
// with -z nodelete, which would keep all of them. But a thread may still run in it: one that looks up a name for as long as
// the resolver takes, or those of a session that nobody has closed. Then this copy stays.
extern "C" JNIEXPORT void JNICALL JNI_OnUnload(JavaVM*, void*) {
  if (faro::detail::all_threads_are_over()) return faro::detail::prepare_to_unload();
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&JNI_OnUnload), &own) != 0)
    (void)dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
