#include "node/node_presence.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/on_cancel.h"

namespace faro::node {

void NodePresence::begin(std::vector<bool> present, std::vector<bool> known,
                         const base::Clock& clock, base::Nanoseconds keep) {
  const std::lock_guard lock(mutex_);
  clock_ = &clock;
  keep_ = keep;
  present_ = std::move(present);
  known_ = std::move(known);
  resting_.assign(present_.size(), false);
}

bool NodePresence::is_present(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return node < present_.size() && present_[node];
}

Status NodePresence::await(uint32_t node, Wait wait, const Cancellation& cancellation) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);  // added to a time
  if (!wait.is_none() && wait.limit() < std::chrono::nanoseconds::zero()) {
    return base::error(Code::invalid_argument, "a time limit of {} ns is negative",
                       wait.limit().count());
  }
  const detail::OnCancel wakes(cancellation, [this] {
    { const std::lock_guard lock(mutex_); }  // whoever waits has not looked yet, or is asleep
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  if (node >= present_.size()) {
    return base::error(Code::invalid_argument, "node {} does not exist (0 … {})", node,
                       present_.size() - 1);
  }
  const auto over = [&] { return closed_ || present_[node] || cancellation.cancelled(); };
  const auto awaited = awaited_.insert(node);
  if (wait.is_forever()) {
    changed_.wait(lock, over);
  } else if (!wait.is_none()) {
    changed_.wait_for(lock, std::min(wait.limit(), kLongest), over);
  }
  awaited_.erase(awaited);
  if (!closed_ && present_[node]) {
    lock.unlock();
    ask_for(node);
    return Status::Ok();
  }
  if (closed_) return Status(Code::session_closed, "the session was closed");
  if (cancellation.cancelled())
    return base::error(Code::cancelled, "the wait for node {} was cancelled", node);
  return base::error(Code::deadline_exceeded, "node {} is not there", node).of_node(node);
}

void NodePresence::ask_for(uint32_t node) {
  const base::Nanoseconds until = base::deadline_after(clock_->now_ns(), keep_);
  const std::lock_guard lock(mutex_);
  if (node < present_.size()) asked_for_[node] = until;
}

bool NodePresence::is_asked_for(uint32_t node) const noexcept {
  const base::Nanoseconds now = clock_->now_ns();
  const std::lock_guard lock(mutex_);
  const auto asked = asked_for_.find(node);
  return asked != asked_for_.end() && now < asked->second;
}

std::set<uint32_t> NodePresence::awaited() const {
  const std::lock_guard lock(mutex_);
  return {awaited_.begin(), awaited_.end()};
}

void NodePresence::lost(uint32_t node) {
  const std::lock_guard lock(mutex_);
  present_[node] = false;
  resting_[node] = false;
}

void NodePresence::rests(uint32_t node) {
  const std::lock_guard lock(mutex_);
  present_[node] = false;
  resting_[node] = true;
}

void NodePresence::is_another(uint32_t node) {
  const std::lock_guard lock(mutex_);
  resting_[node] = false;
}

NodePresence::Return NodePresence::returned(uint32_t node) {
  Return how = Return::again;
  {
    const std::lock_guard lock(mutex_);
    if (resting_[node]) how = Return::from_rest;
    resting_[node] = false;
    if (!known_[node]) how = Return::first;
    present_[node] = true;
    known_[node] = true;
  }
  changed_.notify_all();
  return how;
}

void NodePresence::removed(uint32_t node) {
  const std::lock_guard lock(mutex_);
  present_[node] = false;
  known_[node] = false;
  resting_[node] = false;
  asked_for_.erase(node);
}

bool NodePresence::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void NodePresence::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace faro::node
