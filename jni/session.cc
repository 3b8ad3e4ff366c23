// io.faro.Session
#include <jni.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "faro/c.h"
#include "jni/callbacks.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"
#include "jni/session_config.h"

namespace faro::jni {
namespace {

// The handle, or the negative code.
jlong open(JNIEnv* env, jclass, jbyteArray settings, jboolean environment, jlong cancellation) {
  const Owned<faro_config> config = config_of(env, settings, environment);
  if (config == nullptr) return failed();
  const std::shared_ptr<faro_cancellation> cancelled = cancellations().find(cancellation);
  faro_session* session = nullptr;
  const faro_code opened = faro_session_open(config.get(), nullptr, cancelled.get(), &session);
  if (opened != FARO_CODE_OK) return result(opened);
  return sessions().add(std::make_shared<SessionState>(Owned<faro_session>(session)));
}

// node, nodes, workers, this node's first worker and its workers
void shape(JNIEnv* env, jclass, jlong handle, jintArray to) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return;
  const faro_topology& of = state->topology;
  const std::array<jint, 5> values{static_cast<jint>(of.node), static_cast<jint>(of.node_count),
                                   static_cast<jint>(of.worker_count),
                                   static_cast<jint>(of.first_worker),
                                   static_cast<jint>(of.local_worker_count)};
  env->SetIntArrayRegion(to, 0, values.size(), values.data());
}

// counter, incarnation, issuer
jint begin_query(JNIEnv* env, jclass, jlong handle, jlongArray to) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return session_closed();
  faro_query_id query{};
  (void)faro_session_begin_query(state->handle.get(), &query);  // both are there
  const std::array<jlong, 3> words{static_cast<jlong>(query.counter),
                                   static_cast<jlong>(query.incarnation),
                                   static_cast<jlong>(query.issuer)};
  env->SetLongArrayRegion(to, 0, words.size(), words.data());
  return 0;
}

jint declare_query(JNIEnv* env, jclass, jlong handle, jlong counter, jlong incarnation, jint issuer,
                   jintArray workers) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return session_closed();
  const faro_query_id query = query_of(counter, incarnation, issuer);
  const std::vector<uint32_t> named = numbers_of(env, workers);
  return result(
      faro_session_declare_query(state->handle.get(), &query, named.data(), named.size()));
}

jint cancel_query(JNIEnv* env, jclass, jlong handle, jlong counter, jlong incarnation, jint issuer,
                  jbyteArray reason) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return session_closed();
  const faro_query_id query = query_of(counter, incarnation, issuer);
  return result(
      faro_session_cancel_query(state->handle.get(), &query, text_of(env, reason).c_str()));
}

// An outcome (deadline also when cancelled), or the negative code.
jint await_node(JNIEnv*, jclass, jlong handle, jint node, jlong timeout_ns, jlong cancellation) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return session_closed();
  const std::shared_ptr<faro_cancellation> cancelled = cancellations().find(cancellation);
  const faro_code there = faro_session_await_node(state->handle.get(), static_cast<uint32_t>(node),
                                                  cancelled.get(), timeout_ns);
  const bool is_over = there == FARO_CODE_DEADLINE_EXCEEDED || there == FARO_CODE_CANCELLED;
  return is_over ? FARO_OUTCOME_DEADLINE : result(there);
}

// 1 or 0, or the negative code.
jint has_node(JNIEnv*, jclass, jlong handle, jint node) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return session_closed();
  int32_t has_node = 0;  // also if there is no such number
  (void)faro_session_has_node(state->handle.get(), static_cast<uint32_t>(node), &has_node);
  return has_node;
}

void complete(void* stage) { static_cast<const ReadyStage*>(stage)->complete(); }
void forget(void* stage) { delete static_cast<const ReadyStage*>(stage); }

// Whenever a worker that was armed is ready, ready_watch.complete(its local index) is called.
jint complete_ready(JNIEnv* env, jclass, jlong handle, jobject ready_watch) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return session_closed();
  const std::string thread_name = "faro-ready-" + std::to_string(state->topology.node);
  faro_code code = FARO_CODE_OK;
  for (jint w = 0; code == FARO_CODE_OK && state->worker(w) != nullptr; ++w)
    code = faro_worker_on_ready(state->worker(w)->handle, complete,
                                new ReadyStage(env, ready_watch, w, thread_name), forget);
  return result(code);
}

// Shuffles that are still open keep the memory, not the session.
jint close(JNIEnv*, jclass, jlong handle) {
  const std::shared_ptr<SessionState> state = sessions().remove(handle);
  if (state == nullptr) return 0;
  state->events->close();
  return result(faro_session_close(state->handle.get()));
}

const std::array kMethods{method("open", "([BZJ)J", open),
                          method("shape", "(J[I)V", shape),
                          method("beginQuery", "(J[J)I", begin_query),
                          method("declareQuery", "(JJJI[I)I", declare_query),
                          method("cancelQuery", "(JJJI[B)I", cancel_query),
                          method("awaitNode", "(JIJJ)I", await_node),
                          method("hasNode", "(JI)I", has_node),
                          method("completeReady", "(JLio/faro/ReadyWatch;)I", complete_ready),
                          method("close", "(J)I", close)};

}  // namespace

const Natives kSessionNatives{"io/faro/Session", kMethods};

}  // namespace faro::jni
