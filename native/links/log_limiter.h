// LogLimiter: at most one warning per cause and time span, however often the cause occurs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace faro::links {

/// Threads: one. A peer that dials all day must not fill the log.
class LogLimiter {
 public:
  static constexpr base::Nanoseconds kSpan = 10'000'000'000;

  /// Whether to log `cause` now. `suppressed`: how many times it was not logged since it last was.
  bool allows(const std::string& cause, base::Nanoseconds now, uint64_t& suppressed) {
    if (causes_.size() >= kCauseLimit && causes_.find(cause) == causes_.end()) causes_.clear();
    Seen& seen = causes_[cause];
    if (seen.next != 0 && now < seen.next) {
      ++seen.suppressed;
      return false;
    }
    suppressed = seen.suppressed;
    seen = {now + kSpan, 0};
    return true;
  }

 private:
  // Causes may contain text of unauthenticated peers.
  static constexpr size_t kCauseLimit = 64;
  struct Seen {
    base::Nanoseconds next = 0;
    uint64_t suppressed = 0;
  };
  std::unordered_map<std::string, Seen> causes_;
};

}  // namespace faro::links
