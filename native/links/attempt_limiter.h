// AttemptLimiter: how often an address may fail to prove that it belongs to the cluster.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace faro::links {

/// Each address may fail a few times at once, then once per interval. Attempts that succeed are not
/// counted. Peers that have to wait do so in a queue, first come, first served (SocketAcceptor, Admission):
/// a peer whose address keeps failing still gets its turn, however often the others there ask.
/// Threads: one.
class AttemptLimiter {
 public:
  static constexpr int kAtOnce = 8;
  /// A secret has at least 32 bytes, which cannot be guessed at any rate. What this limits is the time that
  /// a flood costs: about a millisecond per TLS handshake.
  static constexpr base::Nanoseconds kInterval = 100'000'000;
  /// Most connections of one address that may wait for their turn. None waits longer than for all of these.
  static constexpr size_t kWaitingPerAddress = 32;
  /// Most addresses remembered. Beyond it the one that has waited longest is forgotten.
  static constexpr size_t kAddressLimit = 1024;

  /// When a peer at this address may try; 0: at once.
  base::Nanoseconds next(const std::string& address) const {
    const auto found = free_at_.find(address);
    constexpr base::Nanoseconds kDebt = (kAtOnce - 1) * kInterval;
    return found == free_at_.end() || found->second <= kDebt ? 0 : found->second - kDebt;
  }
  bool allows(const std::string& address, base::Nanoseconds now) const {
    return next(address) <= now;
  }
  /// How many attempts of this address may be under way: if all of them fail, it has failed as often
  /// as it may. One at least; any number if it has not failed lately.
  size_t may_be_under_way(const std::string& address, base::Nanoseconds now) const {
    const auto found = free_at_.find(address);
    if (found == free_at_.end() || found->second <= now) return SIZE_MAX;
    const auto failed = static_cast<size_t>((found->second - now + kInterval - 1) / kInterval);
    return failed < kAtOnce ? kAtOnce - failed : 1;
  }

  /// An attempt has failed, or one that had to wait begins.
  void spend(const std::string& address, base::Nanoseconds now) {
    if (free_at_.size() >= kAddressLimit && free_at_.find(address) == free_at_.end()) {
      free_at_.erase(std::min_element(free_at_.begin(), free_at_.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; }));
    }
    base::Nanoseconds& free_at = free_at_[address];
    // However many attempts fail at once, the next one may be made after an interval.
    free_at = std::min(std::max(free_at, now) + kInterval, now + kAtOnce * kInterval);
  }

 private:
  std::unordered_map<std::string, base::Nanoseconds> free_at_;  // when its failures are forgotten
};

}  // namespace faro::links
