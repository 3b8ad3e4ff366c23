#include "node/node_presence.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/on_cancel.h"

namespace faro::node {

void NodePresence::begin(std::vector<bool> present) {
  const std::lock_guard lock(mutex_);
  present_ = std::move(present);
}

bool NodePresence::is_present(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return node < present_.size() && present_[node];
}

Outcome NodePresence::await(uint32_t node, Timeout timeout, const Cancellation& cancellation) {
  const detail::OnCancel wakes(cancellation, [this] {
    { const std::lock_guard lock(mutex_); }  // whoever waits has not looked yet, or is asleep
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  if (node >= present_.size()) return Outcome::failed;
  const auto over = [&] { return closed_ || present_[node] || cancellation.cancelled(); };
  if (timeout == kNoTimeout) {
    changed_.wait(lock, over);
  } else if (!changed_.wait_for(lock, std::max(timeout, Timeout::zero()), over)) {
    return Outcome::deadline;
  }
  if (closed_) return Outcome::failed;
  return present_[node] ? Outcome::done : Outcome::deadline;
}

void NodePresence::lost(uint32_t node) {
  const std::lock_guard lock(mutex_);
  present_[node] = false;
}

void NodePresence::returned(uint32_t node) {
  {
    const std::lock_guard lock(mutex_);
    present_[node] = true;
  }
  changed_.notify_all();
}

void NodePresence::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace faro::node
