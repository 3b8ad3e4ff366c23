// Mailbox: what the network thread tells a poller of its channels.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "counters/endpoint_layout.h"
#include "faro/endpoint.h"
#include "faro/status.h"
#include "transport/transport.h"

namespace faro::endpoint {

/// A channel has opened, if there is a link, is to be drained, or else ended.
struct ChannelNews {
  ChannelId id;
  std::shared_ptr<transport::DataLink> link{};
  ChannelInfo info{};
  Status cause{};
  counters::ChannelRecord* record = nullptr;  // of one that has opened
  bool is_idle = false;  // nothing has passed over it for channel.idle_ms, as the cause says
};

/// Threads: any put, the poller's takes. Blocks: never for long.
class Mailbox {
 public:
  /// Ring the poller's doorbell afterwards (this is R1 of native/DESIGN.md#memory-orders).
  void put(ChannelNews news) {
    const std::lock_guard lock(mutex_);
    news_.push_back(std::move(news));
    has_news_.store(true, std::memory_order_seq_cst);
  }
  /// S2.
  bool has_news() const noexcept { return has_news_.load(std::memory_order_seq_cst); }
  std::vector<ChannelNews> take() {
    const std::lock_guard lock(mutex_);
    has_news_.store(false, std::memory_order_relaxed);
    return std::exchange(news_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<ChannelNews> news_;  // guarded by mutex_
  std::atomic<bool> has_news_{false};
};

}  // namespace faro::endpoint
