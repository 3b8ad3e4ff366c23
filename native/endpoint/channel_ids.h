// ChannelIds: which channels an endpoint has.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "faro/endpoint.h"

namespace faro::endpoint {

/// Threads: any. Blocks: never for long.
class ChannelIds {
 public:
  explicit ChannelIds(uint32_t limit) : limit_(limit) {}

  /// Empty: there are as many as the limit allows.
  std::optional<ChannelId> take() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const ChannelId id = free_.back();
      free_.pop_back();
      return id;
    }
    if (next_ == limit_) return std::nullopt;
    free_.reserve(next_ + 1);  // so that give_back needs no memory
    return ChannelId{next_++, 1};
  }

  /// Those that exist.
  uint32_t count() const {
    const std::lock_guard lock(mutex_);
    return next_ - static_cast<uint32_t>(free_.size());
  }

  void give_back(ChannelId id) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back({id.index, id.generation + 1});
  }

 private:
  const uint32_t limit_;
  mutable std::mutex mutex_;
  uint32_t next_ = 0;            // guarded by mutex_, as the next one
  std::vector<ChannelId> free_;  // each with its next generation
};

}  // namespace faro::endpoint
