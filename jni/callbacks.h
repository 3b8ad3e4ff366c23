// What is called in Java from here. Looked up once, in JNI_OnLoad.
#pragma once

#include <jni.h>

namespace faro::jni {

/// Errors: false, with a Java exception pending.
bool find_callbacks(JNIEnv* env);

/// condition.getAsBoolean(). If it throws: true, with the exception pending; nothing of Java may be
/// called before the native method returns.
bool holds(JNIEnv* env, jobject condition);

}  // namespace faro::jni
