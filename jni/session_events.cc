// io.faro.SessionEvents
#include "jni/session_events.h"

#include <jni.h>

#include <array>
#include <memory>

#include "jni/errors.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {

void SessionEvents::push(SessionEvent event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  changed_.notify_one();
}

SessionEvent SessionEvents::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || !events_.empty(); });
  if (closed_) return {};
  SessionEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void SessionEvents::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

namespace {

using Kind = SessionEventKind;

jint listen(JNIEnv*, jclass, jlong session) {
  const std::shared_ptr<SessionState> state = sessions().find(session);
  if (state == nullptr) return fail(Code::session_closed, "the session was closed");
  const std::shared_ptr<SessionEvents> events = state->events;
  state->session->listen({.node_lost =
                              [events](uint32_t node, const Status& cause) {
                                events->push({Kind::node_lost, node, {}, cause});
                              },
                          .node_left =
                              [events](uint32_t node) {
                                events->push({Kind::node_left, node});
                              },
                          .node_returned =
                              [events](uint32_t node) {
                                events->push({Kind::node_returned, node});
                              },
                          .node_added =
                              [events](uint32_t node) {
                                events->push({Kind::node_added, node});
                              },
                          .node_drained =
                              [events](uint32_t node) {
                                events->push({Kind::node_drained, node});
                              },
                          .node_removed =
                              [events](uint32_t node) {
                                events->push({Kind::node_removed, node});
                              },
                          .query_failed =
                              [events](const QueryId& query, const Status& cause) {
                                events->push({Kind::query_failed, 0, query, cause});
                              }});
  return 0;
}

jint await_event(JNIEnv* env, jclass, jlong session, jlongArray to) {
  std::shared_ptr<SessionEvents> events;
  if (const std::shared_ptr<SessionState> state = sessions().find(session); state != nullptr)
    events = state->events;
  if (events == nullptr) return static_cast<jint>(Kind::closed);
  const SessionEvent event = events->take();
  const std::array<jlong, 5> words{
      static_cast<jlong>(event.node), static_cast<jlong>(event.query.counter),
      static_cast<jlong>(event.query.incarnation), static_cast<jlong>(event.query.issuer),
      event.cause.ok() ? 0 : fail(event.cause)};
  env->SetLongArrayRegion(to, 0, words.size(), words.data());
  return static_cast<jint>(event.kind);
}

const std::array kMethods{method("listen", "(J)I", listen),
                          method("awaitEvent", "(J[J)I", await_event)};

}  // namespace

const Natives kSessionEventsNatives{"io/faro/SessionEvents", kMethods};

}  // namespace faro::jni
