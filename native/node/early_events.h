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

namespace faro::node {

/// Keeps events until the node is complete; then they happen, in order, and later ones at once.
///
/// Threads: any. Blocks: while the kept ones happen. An event must not bring about another one
/// on its own thread.
class EarlyEvents {
 public:
  using Event = std::function<void()>;

  /// What is kept of one peer: thousands of queries that it opened early, and no flood.
  static constexpr size_t kPeerBytes = 4 << 20;
  /// What keeping a message takes beside its bytes, at most.
  static constexpr size_t kMessageOverhead = 256;

  bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }

  void happens(Event event) {
    if (!keep([&] { events_.push_back(std::move(event)); })) event();
  }

  /// A peer is gone: what it sent happens before that. A process that comes in its place has not
  /// sent anything yet.
  void loses(uint32_t node, Event event) {
    const auto take = [&] {
      peers_.erase(node);
      events_.push_back(std::move(event));
    };
    if (!keep(take)) event();
  }

  /// A message of `bytes` bytes, which `event` has with it. Once a peer has sent more than kPeerBytes, no
  /// more of it is kept, and `refused` happens when the node is complete.
  void arrives(uint32_t node, size_t bytes, Event event, Event refused) {
    const auto take = [&] {
      Peer& peer = peers_[node];
      if (peer.refused) return;
      peer.bytes += bytes + kMessageOverhead;
      if (peer.bytes > kPeerBytes) {
        peer.refused = std::move(refused);
      } else {
        events_.push_back(std::move(event));
      }
    };
    if (!keep(take)) event();
  }

  /// The node is complete.
  void end() {
    std::lock_guard lock(mutex_);
    for (const Event& event : events_) event();
    for (const auto& [node, peer] : peers_) {
      if (peer.refused) peer.refused();
    }
    events_.clear();
    peers_.clear();
    over_.store(true, std::memory_order_release);
  }

 private:
  struct Peer {
    size_t bytes = 0;  // of its messages
    Event refused;
  };

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
  std::map<uint32_t, Peer> peers_;
};

}  // namespace faro::node
