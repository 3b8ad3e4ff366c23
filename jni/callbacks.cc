#include "jni/callbacks.h"

#include <utility>

#include "jni/natives.h"

namespace faro::jni {
namespace {

JavaVM* machine = nullptr;
jmethodID get_as_boolean = nullptr;
jmethodID complete_stage = nullptr;

/// Detaches the thread from the JVM when it ends, if it was attached here.
struct Attachment {
  bool attached = false;
  ~Attachment() {
    if (attached) machine->DetachCurrentThread();
  }
};

// The calling thread's. If the JVM does not know the thread it does from now on, by this name, until the thread ends. Null
// if the JVM is ending.
JNIEnv* environment(const std::string& thread_name) noexcept {
  void* env = nullptr;
  if (machine->GetEnv(&env, kJniVersion) == JNI_OK) return static_cast<JNIEnv*>(env);
  thread_local Attachment attachment;
  JavaVMAttachArgs arguments{kJniVersion, const_cast<char*>(thread_name.c_str()), nullptr};
  attachment.attached = machine->AttachCurrentThreadAsDaemon(&env, &arguments) == JNI_OK;
  return attachment.attached ? static_cast<JNIEnv*>(env) : nullptr;
}

}  // namespace

// The ids stay valid without references to the classes: one is of the boot loader, which is never unloaded, the other one
// of the loader that this library goes with.
bool find_callbacks(JNIEnv* env) {
  if (env->GetJavaVM(&machine) != JNI_OK) return false;
  const auto find = [env](const char* class_name, const char* name, const char* signature) {
    const jclass found = env->FindClass(class_name);
    if (found == nullptr) return jmethodID{nullptr};
    const jmethodID method = env->GetMethodID(found, name, signature);
    env->DeleteLocalRef(found);
    return method;
  };
  get_as_boolean = find("java/util/function/BooleanSupplier", "getAsBoolean", "()Z");
  if (get_as_boolean == nullptr) return false;
  complete_stage = find("io/faro/ReadyWatch", "complete", "(I)V");
  return complete_stage != nullptr;
}

bool holds(JNIEnv* env, jobject condition) {
  const jboolean value = env->CallBooleanMethod(condition, get_as_boolean);
  return env->ExceptionCheck() == JNI_TRUE || value == JNI_TRUE;
}

ReadyStages::ReadyStages(JNIEnv* env, jobject ready_watch, std::string thread_name)
    : thread_name_(std::move(thread_name)), ready_watch_(env->NewGlobalRef(ready_watch)) {}

ReadyStages::~ReadyStages() {
  if (JNIEnv* const env = environment(thread_name_)) env->DeleteGlobalRef(ready_watch_);
}

void ReadyStages::complete(jint worker) const noexcept {
  JNIEnv* const env = environment(thread_name_);
  if (env == nullptr) return;
  env->CallVoidMethod(ready_watch_, complete_stage, worker);
  // What dependents throw is in their stages. There may be no memory to complete one: nothing can be done about that here.
  env->ExceptionClear();
}

}  // namespace faro::jni
