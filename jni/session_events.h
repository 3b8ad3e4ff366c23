// SessionEvents: what happens to a session waits here until its thread of Java takes it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>

#include "faro/c.h"

namespace faro::jni {

/// By the numbers of SessionEvents.java.
enum class SessionEventKind {
  closed,
  node_lost,
  node_left,
  node_returned,
  query_failed,
  node_added,
  node_drained,
  node_removed
};

struct SessionEvent {
  SessionEventKind kind = SessionEventKind::closed;
  uint32_t node = 0;
  faro_query_id query{};
  faro_error cause{};     // FARO_CODE_OK: none
  std::string message{};  // of the cause
};

/// Threads: any.
class SessionEvents {
 public:
  void push(SessionEvent event);
  /// With the calling thread's last failure as its cause.
  void push_failure(SessionEvent event);
  /// Blocks until there is an event; `closed` after `close`.
  SessionEvent take();
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SessionEvent> events_;
  bool closed_ = false;
};

}  // namespace faro::jni
