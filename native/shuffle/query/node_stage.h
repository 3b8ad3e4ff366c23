// NodeStage: a stage whose rows any worker of this node takes, or each of them does (Delivery), as these workers see it together.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace faro::shuffle {

/// Threads: any. Workers are counted within the node.
class NodeStage {
 public:
  explicit NodeStage(uint32_t workers) : left_(workers) {}

  /// The worker takes no more rows: it has stopped, has closed the shuffle, or its query has failed.
  void leave(uint32_t worker) noexcept { left_[worker].store(true, std::memory_order_release); }
  bool has_left(uint32_t worker) const noexcept {
    return left_[worker].load(std::memory_order_acquire);
  }
  /// Some worker has taken a frame of rows.
  void taken(base::Nanoseconds now) noexcept { taken_at_.store(now, std::memory_order_relaxed); }
  /// When that was; 0: never.
  base::Nanoseconds taken_at() const noexcept { return taken_at_.load(std::memory_order_relaxed); }

 private:
  std::vector<std::atomic<bool>> left_;
  std::atomic<base::Nanoseconds> taken_at_{0};
};

/// Those of one query. Threads: any.
class NodeStages {
 public:
  /// Made by the first call for a stage. Throws: std::bad_alloc.
  std::shared_ptr<NodeStage> of(uint32_t stage, uint32_t workers) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<NodeStage>& known = stages_[stage];
    if (known == nullptr) known = std::make_shared<NodeStage>(workers);
    return known;
  }

  /// Null: nobody has asked for it.
  std::shared_ptr<NodeStage> find(uint32_t stage) noexcept {
    const std::lock_guard lock(mutex_);
    const auto known = stages_.find(stage);
    return known == stages_.end() ? nullptr : known->second;
  }

 private:
  std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<NodeStage>> stages_;
};

}  // namespace faro::shuffle
