// AttemptLimiter: how often an address may fail to show that it belongs to the cluster.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace faro::links {

/// A few failures at once, then one per interval, for each address. Who succeeds is never counted.
/// Whoever has to wait does so in a queue, first come, first served (Door, ClusterMembership): of an
/// address that keeps failing each gets its turn, and not only who asks most often.
/// Threads: one.
class AttemptLimiter {
 public:
  static constexpr int kAtOnce = 8;
  /// A secret has 32 bytes at least, which nobody guesses at any rate. What is limited is the time
  /// that a flood costs, at a millisecond or so for a handshake of TLS.
  static constexpr base::Nanoseconds kInterval = 100'000'000;
  /// Who may wait for its turn, of one address; none waits longer than for all of these.
  static constexpr size_t kWaitingPerAddress = 32;
  /// Addresses remembered; beyond it the one that has waited longest is forgotten.
  static constexpr size_t kAddressLimit = 1024;

  /// From when on somebody from this address may try; 0: at once.
  base::Nanoseconds next(const std::string& address) const {
    const auto found = free_at_.find(address);
    constexpr base::Nanoseconds kDebt = (kAtOnce - 1) * kInterval;
    return found == free_at_.end() || found->second <= kDebt ? 0 : found->second - kDebt;
  }
  bool allows(const std::string& address, base::Nanoseconds now) const {
    return next(address) <= now;
  }

  /// An attempt has failed, or one that had to wait begins.
  void spend(const std::string& address, base::Nanoseconds now) {
    if (free_at_.size() >= kAddressLimit && free_at_.find(address) == free_at_.end()) {
      free_at_.erase(std::min_element(free_at_.begin(), free_at_.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; }));
    }
    base::Nanoseconds& free_at = free_at_[address];
    // However many fail at once, the next may try after an interval.
    free_at = std::min(std::max(free_at, now) + kInterval, now + kAtOnce * kInterval);
  }

 private:
  std::unordered_map<std::string, base::Nanoseconds> free_at_;  // when its failures are forgotten
};

}  // namespace faro::links
