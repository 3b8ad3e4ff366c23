// What is called in Java from here. Looked up once, in JNI_OnLoad.
#pragma once

#include <jni.h>

#include <cstddef>
#include <mutex>
#include <string>

#include "faro/c.h"

namespace faro::jni {

/// Errors: false, with a Java exception pending.
bool find_callbacks(JNIEnv* env);

/// condition.getAsBoolean(). If it throws: true, with the exception pending; nothing of Java may be
/// called before the native method returns.
bool holds(JNIEnv* env, jobject condition);

/// memory.take(bytes) of a RowMemory: where a row of `bytes` bytes is put together. If it throws: null, with the exception pending;
/// nothing of Java may be called before the native method returns.
void* row_memory(JNIEnv* env, jobject memory, size_t bytes);

/// A worker of a ReadyWatch of Java, which is not collected as long as this exists. Called by the
/// readiness thread of a session: with the first call that becomes a daemon thread of the JVM, of
/// this name, until it ends.
///
/// Threads: any.
class ReadyStage {
 public:
  ReadyStage(JNIEnv* env, jobject ready_watch, jint worker, std::string thread_name);
  ~ReadyStage();
  ReadyStage(const ReadyStage&) = delete;
  ReadyStage& operator=(const ReadyStage&) = delete;

  /// ready_watch.complete(worker). Nothing happens if the JVM is ending.
  void complete() const noexcept;

 private:
  const std::string thread_name_;
  const jobject ready_watch_;
  const jint worker_;
};

/// An AcceptCall of Java, which is not collected until `forget`. Called by the network thread of an endpoint: with the first
/// call that becomes a daemon thread of the JVM, until it ends.
///
/// Threads: any; ask: the network thread.
class Acceptor {
 public:
  Acceptor(JNIEnv* env, jobject accept_call) : accept_call_(env->NewGlobalRef(accept_call)) {}
  ~Acceptor() { forget(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// accept_call.accept(…). Refuses if that throws, was forgotten, or the JVM is ending.
  void ask(const faro_channel_request& request, faro_channel_acceptance& answer);
  /// Nobody is asked any more.
  void forget() noexcept;

 private:
  jobject local(JNIEnv* env) const;

  mutable std::mutex mutex_;
  jobject accept_call_;  // guarded by mutex_; null: forgotten
  std::string refusal_;  // the last one, which the library copies when `ask` has returned
};

}  // namespace faro::jni
