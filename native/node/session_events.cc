#include "node/session_events.h"

namespace faro::node {

void SessionEvents::listen(SessionListener listener) {
  auto shared = std::make_shared<const SessionListener>(std::move(listener));
  const std::lock_guard lock(mutex_);
  if (!closed_) listener_.swap(shared);  // the one before goes when the lock has been given back
}

bool SessionEvents::query_failed(const QueryId& query, const Status& cause) {
  const std::lock_guard lock(mutex_);
  if (listener_ == nullptr || !listener_->query_failed) return false;
  failed_.emplace_back(query, cause);
  return true;
}

void SessionEvents::tell_lost(uint32_t node, const Status& cause) const {
  if (const auto told = listener(); told && told->node_lost) told->node_lost(node, cause);
}

void SessionEvents::tell_left(uint32_t node) const {
  if (const auto told = listener(); told && told->node_left) told->node_left(node);
}

void SessionEvents::tell_returned(uint32_t node) const {
  if (const auto told = listener(); told && told->node_returned) told->node_returned(node);
}

void SessionEvents::tell_added(uint32_t node) const {
  if (const auto told = listener(); told && told->node_added) told->node_added(node);
}

void SessionEvents::tell_drained(uint32_t node) const {
  if (const auto told = listener(); told && told->node_drained) told->node_drained(node);
}

void SessionEvents::tell_removed(uint32_t node) const {
  if (const auto told = listener(); told && told->node_removed) told->node_removed(node);
}

void SessionEvents::tell_failed_queries() {
  std::list<std::pair<QueryId, Status>> failed;
  {
    const std::lock_guard lock(mutex_);
    failed.swap(failed_);
  }
  for (const auto& [query, cause] : failed) {
    if (const auto told = listener(); told && told->query_failed) told->query_failed(query, cause);
  }
}

void SessionEvents::close() {
  std::shared_ptr<const SessionListener> before;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  listener_.swap(before);
}

std::shared_ptr<const SessionListener> SessionEvents::listener() const {
  const std::lock_guard lock(mutex_);
  return listener_;
}

}  // namespace faro::node
