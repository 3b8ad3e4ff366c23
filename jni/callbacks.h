// What is called in Java from here. Looked up once, in JNI_OnLoad.
#pragma once

#include <jni.h>

#include <string>

namespace faro::jni {

/// Errors: false, with a Java exception pending.
bool find_callbacks(JNIEnv* env);

/// condition.getAsBoolean(). If it throws: true, with the exception pending; nothing of Java may be
/// called before the native method returns.
bool holds(JNIEnv* env, jobject condition);

/// A ReadyWatch of Java, which is not collected as long as this exists. Called by the readiness thread of a session:
/// with the first call that becomes a daemon thread of the JVM, of this name, until it ends.
///
/// Threads: any.
class ReadyStages {
 public:
  ReadyStages(JNIEnv* env, jobject ready_watch, std::string thread_name);
  ~ReadyStages();
  ReadyStages(const ReadyStages&) = delete;
  ReadyStages& operator=(const ReadyStages&) = delete;

  /// ready_watch.complete(worker). Nothing happens if the JVM is ending.
  void complete(jint worker) const noexcept;

 private:
  const std::string thread_name_;
  const jobject ready_watch_;
};

}  // namespace faro::jni
