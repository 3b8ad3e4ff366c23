// SessionEvents: what happens to a session waits here until its thread of Java takes it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "faro/query.h"
#include "faro/session.h"
#include "faro/status.h"

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
  QueryId query{};
  Status cause{};
};

/// Threads: any.
class SessionEvents {
 public:
  void push(SessionEvent event);
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
