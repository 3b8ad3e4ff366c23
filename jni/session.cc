// io.faro.Session
#include "faro/session.h"

#include <jni.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "jni/callbacks.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"
#include "jni/session_config.h"

namespace faro::jni {
namespace {

QueryId query_of(jlong counter, jlong incarnation, jint issuer) {
  QueryId query;
  query.counter = static_cast<uint64_t>(counter);
  query.incarnation = static_cast<uint64_t>(incarnation);
  query.issuer = static_cast<uint32_t>(issuer);
  return query;
}

jint closed() { return fail(Code::session_closed, "the session was closed"); }

// The handle, or the negative code.
jlong open(JNIEnv* env, jclass, jbyteArray settings, jboolean environment, jlong cancellation) {
  const Result<Config> config = config_of(env, settings, environment);
  if (!config.ok()) return fail(config.status());
  Result<std::unique_ptr<Session>> session = Session::open(*config, cancellation_of(cancellation));
  if (!session.ok()) return fail(session.status());
  return sessions().add(std::make_shared<SessionState>(std::move(*session)));
}

// node, nodes, workers, this node's first worker and its workers
void shape(JNIEnv* env, jclass, jlong handle, jintArray to) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return;
  const Session& session = *state->session;
  const std::array<jint, 5> values{static_cast<jint>(session.node()),
                                   static_cast<jint>(session.node_count()),
                                   static_cast<jint>(session.worker_count()),
                                   static_cast<jint>(session.first_worker(session.node())),
                                   static_cast<jint>(session.local_worker_count())};
  env->SetIntArrayRegion(to, 0, values.size(), values.data());
}

// counter, incarnation, issuer
jint begin_query(JNIEnv* env, jclass, jlong handle, jlongArray to) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return closed();
  const QueryId query = state->session->begin_query();
  const std::array<jlong, 3> words{static_cast<jlong>(query.counter),
                                   static_cast<jlong>(query.incarnation),
                                   static_cast<jlong>(query.issuer)};
  env->SetLongArrayRegion(to, 0, words.size(), words.data());
  return 0;
}

jint declare_query(JNIEnv* env, jclass, jlong handle, jlong counter, jlong incarnation, jint issuer,
                   jintArray workers) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return closed();
  return result(state->session->declare_query(query_of(counter, incarnation, issuer),
                                              numbers_of(env, workers)));
}

jint cancel_query(JNIEnv* env, jclass, jlong handle, jlong counter, jlong incarnation, jint issuer,
                  jbyteArray reason) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return closed();
  return result(
      state->session->cancel_query(query_of(counter, incarnation, issuer), text_of(env, reason)));
}

// An outcome (deadline also when cancelled), or the negative code.
jint await_node(JNIEnv*, jclass, jlong handle, jint node, jlong timeout_ns, jlong cancellation) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return closed();
  const Status there = state->session->await_node(static_cast<uint32_t>(node), wait_of(timeout_ns),
                                                  cancellation_of(cancellation));
  const bool is_over = there.code() == Code::deadline_exceeded || there.code() == Code::cancelled;
  return is_over ? static_cast<jint>(Outcome::deadline) : result(there);
}

// 1 or 0, or the negative code.
jint has_node(JNIEnv*, jclass, jlong handle, jint node) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return closed();
  return state->session->has_node(static_cast<uint32_t>(node)) ? 1 : 0;
}

// Whenever a worker that was armed is ready, ready_watch.complete(its local index) is called.
jint complete_ready(JNIEnv* env, jclass, jlong handle, jobject ready_watch) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return closed();
  Session& session = *state->session;
  const auto stages = std::make_shared<ReadyStages>(env, ready_watch,
                                                    "faro-ready-" + std::to_string(session.node()));
  for (uint32_t w = 0; w < session.local_worker_count(); ++w) {
    const Status status =
        session.worker(w).on_ready([stages, w] { stages->complete(static_cast<jint>(w)); });
    if (!status.ok()) return fail(status);
  }
  return 0;
}

// Shuffles that are still open keep the memory, not the session.
jint close(JNIEnv*, jclass, jlong handle) {
  const std::shared_ptr<SessionState> state = sessions().remove(handle);
  if (state == nullptr) return 0;
  state->events->close();
  return result(state->session->close());
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
