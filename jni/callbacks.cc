#include "jni/callbacks.h"

namespace faro::jni {
namespace {

jmethodID get_as_boolean = nullptr;

}  // namespace

bool find_callbacks(JNIEnv* env) {
  // A class of the boot loader, which is never unloaded: the method id stays valid without a
  // reference to the class.
  const jclass supplier = env->FindClass("java/util/function/BooleanSupplier");
  if (supplier == nullptr) return false;
  get_as_boolean = env->GetMethodID(supplier, "getAsBoolean", "()Z");
  env->DeleteLocalRef(supplier);
  return get_as_boolean != nullptr;
}

bool holds(JNIEnv* env, jobject condition) {
  const jboolean value = env->CallBooleanMethod(condition, get_as_boolean);
  return env->ExceptionCheck() == JNI_TRUE || value == JNI_TRUE;
}

}  // namespace faro::jni
