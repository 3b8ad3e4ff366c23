// What happens to a node before it is complete: peers can be faster than its own open.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace faro::shuffle {

/// Keeps events until the node is complete; then they happen, in order, and later ones at once.
///
/// Threads: any. Blocks: while the kept ones happen. An event must not bring about another one
/// on its own thread.
class EarlyEvents {
 public:
  using Event = std::function<void()>;

  /// What is kept of one peer: thousands of queries that it opened early, and no flood.
  static constexpr size_t kPeerBytes = 4 << 20;

  bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }

  void happens(Event event) {
    if (!keep([&] { events_.push_back(std::move(event)); })) event();
  }

  /// A message of `bytes` bytes, which `event` has with it. Once a peer has sent more than kPeerBytes,
  /// `refused` happens, and nothing else of this peer.
  void arrives(uint32_t node, size_t bytes, Event event, Event refused) {
    const auto take = [&] {
      size_t& kept = bytes_[node];
      if (kept > kPeerBytes) return;
      kept += bytes + sizeof(Event);
      events_.push_back(std::move(kept > kPeerBytes ? refused : event));
    };
    if (!keep(take)) event();
  }

  /// The node is complete.
  void end() {
    std::lock_guard lock(mutex_);
    for (const Event& event : events_) event();
    events_.clear();
    bytes_.clear();
    over_.store(true, std::memory_order_release);
  }

 private:
  template <typename Take>
  bool keep(const Take& take) {
    if (is_over()) return false;
    std::lock_guard lock(mutex_);
    if (over_.load(std::memory_order_relaxed)) return false;
    take();
    return true;
  }

  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::vector<Event> events_;
  std::map<uint32_t, size_t> bytes_;  // of messages, by peer
};

}  // namespace faro::shuffle
