// SessionEvents: what the engine's listener is told, always by the network thread.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "faro/query.h"
#include "faro/session.h"
#include "faro/status.h"

namespace faro::node {

/// A query may fail on any thread, inside any call: then it waits here for the network thread.
///
/// Threads: any; tell_…: the network thread.
class SessionEvents {
 public:
  void listen(SessionListener listener);

  /// Whether the network thread has to come for it (tell_failed_queries). Throws: std::bad_alloc; then it is
  /// not told.
  bool query_failed(const QueryId& query, const Status& cause);

  void tell_lost(uint32_t node, const Status& cause) const;
  void tell_left(uint32_t node) const;
  void tell_returned(uint32_t node) const;
  void tell_added(uint32_t node) const;
  void tell_drained(uint32_t node) const;
  void tell_removed(uint32_t node) const;
  void tell_failed_queries();

  /// Nothing is told from now on, except by a call that is under way.
  void close();

 private:
  std::shared_ptr<const SessionListener> listener() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const SessionListener> listener_;  // null: nobody listens
  std::list<std::pair<QueryId, Status>> failed_;     // not told yet
  bool closed_ = false;
};

}  // namespace faro::node
