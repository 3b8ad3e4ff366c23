#include "faro/cancellation.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "base/on_cancel.h"

namespace faro {

struct detail::CancellationState {
  std::mutex mutex;
  std::atomic<bool> cancelled{false};          // written under the mutex
  std::list<std::function<void()>> listeners;  // guarded by mutex
};

Cancellation::Cancellation() : state_(std::make_shared<detail::CancellationState>()) {}

void Cancellation::cancel() const {
  const std::lock_guard lock(state_->mutex);
  // Release: a thread that sees the flag also sees the cause (partner: the acquire in cancelled).
  if (state_->cancelled.exchange(true, std::memory_order_release)) return;
  for (const auto& wake : state_->listeners) wake();
}

bool Cancellation::cancelled() const noexcept {
  return state_->cancelled.load(std::memory_order_acquire);
}

namespace detail {

OnCancel::OnCancel(const Cancellation& cancellation, std::function<void()> wake)
    : state_(cancellation.state_) {
  const std::lock_guard lock(state_->mutex);
  place_ = state_->listeners.insert(state_->listeners.end(), std::move(wake));
  if (state_->cancelled.load(std::memory_order_relaxed)) (*place_)();
}

OnCancel::~OnCancel() {
  const std::lock_guard lock(state_->mutex);
  state_->listeners.erase(place_);
}

}  // namespace detail
}  // namespace faro
