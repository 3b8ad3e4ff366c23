// AttemptLimiter: how often an address may fail to show that it belongs to the cluster.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace faro::session {

/// A few failures at once, then one per interval, for each address. Who succeeds is never counted.
/// Threads: one.
class AttemptLimiter {
 public:
  static constexpr int kAtOnce = 8;
  static constexpr base::Nanoseconds kInterval = 1'000'000'000;
  /// Addresses remembered; beyond it the one that has waited longest is forgotten.
  static constexpr size_t kAddressLimit = 1024;

  /// Whether somebody from this address may try now.
  bool allows(const std::string& address, base::Nanoseconds now) const {
    const auto found = free_at_.find(address);
    return found == free_at_.end() || found->second <= now + (kAtOnce - 1) * kInterval;
  }

  void failed(const std::string& address, base::Nanoseconds now) {
    if (free_at_.size() >= kAddressLimit && free_at_.find(address) == free_at_.end()) {
      free_at_.erase(std::min_element(free_at_.begin(), free_at_.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; }));
    }
    base::Nanoseconds& free_at = free_at_[address];
    free_at = std::max(free_at, now) + kInterval;
  }

 private:
  std::unordered_map<std::string, base::Nanoseconds> free_at_;  // when its failures are forgotten
};

}  // namespace faro::session
