// io.faro.SessionEvents
#include "jni/session_events.h"

#include <jni.h>

#include <array>
#include <memory>
#include <utility>

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

void SessionEvents::push_failure(SessionEvent event) {
  event.cause = last_error();
  event.message = event.cause.message;
  push(std::move(event));
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

// What becomes of the event of a node that has no cause.
template <Kind kKind>
void push(void* events, uint32_t node) {
  static_cast<SessionEvents*>(events)->push({kKind, node});
}

void push_lost(void* events, uint32_t node, faro_code) {
  static_cast<SessionEvents*>(events)->push_failure({Kind::node_lost, node});
}

void push_failed(void* events, const faro_query_id* query, faro_code) {
  static_cast<SessionEvents*>(events)->push_failure({Kind::query_failed, 0, *query});
}

jint listen(JNIEnv*, jclass, jlong session) {
  const std::shared_ptr<SessionState> state = sessions().find(session);
  if (state == nullptr) return session_closed();
  faro_session_listener listener{};
  listener.size = sizeof listener;
  listener.context = state->events.get();
  listener.node_lost = push_lost;
  listener.node_left = push<Kind::node_left>;
  listener.node_returned = push<Kind::node_returned>;
  listener.query_failed = push_failed;
  listener.node_added = push<Kind::node_added>;
  listener.node_drained = push<Kind::node_drained>;
  listener.node_removed = push<Kind::node_removed>;
  return result(faro_session_listen(state->handle.get(), &listener));
}

jint await_event(JNIEnv* env, jclass, jlong session, jlongArray to) {
  std::shared_ptr<SessionEvents> events;
  if (const std::shared_ptr<SessionState> state = sessions().find(session); state != nullptr)
    events = state->events;
  if (events == nullptr) return static_cast<jint>(Kind::closed);
  SessionEvent event = events->take();
  event.cause.message = event.message.c_str();
  if (event.cause.code != FARO_CODE_OK) (void)faro_set_last_error(&event.cause);
  const std::array<jlong, 5> words{static_cast<jlong>(event.node),
                                   static_cast<jlong>(event.query.counter),
                                   static_cast<jlong>(event.query.incarnation),
                                   static_cast<jlong>(event.query.issuer), -event.cause.code};
  env->SetLongArrayRegion(to, 0, words.size(), words.data());
  return static_cast<jint>(event.kind);
}

const std::array kMethods{method("listen", "(J)I", listen),
                          method("awaitEvent", "(J[J)I", await_event)};

}  // namespace

const Natives kSessionEventsNatives{"io/faro/SessionEvents", kMethods};

}  // namespace faro::jni
