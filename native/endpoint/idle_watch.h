// IdleWatch: which channels carry no frames for so long that they are to be drained (channel.idle_ms).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace faro::endpoint {

/// Compares counters now and then: frames themselves cost nothing for it. Threads: the network thread.
class IdleWatch {
 public:
  /// What is kept for each channel.
  struct Seen {
    uint64_t frames = 0;  // both ways
    base::Nanoseconds since = 0;
  };

  /// 0: no channel is ever idle.
  explicit IdleWatch(base::Nanoseconds limit) : limit_(limit) {}

  /// When to look at all channels that are open.
  base::Nanoseconds next_look() const { return next_look_; }
  void begin_look() { next_look_ = base::kForever; }
  void note_opened(Seen& seen, base::Nanoseconds now) {
    seen.since = now;
    if (limit_ != 0) look_again(now);
  }
  /// Whether a channel with that many frames has become idle; again each time that the limit has passed.
  bool is_idle(Seen& seen, uint64_t frames, base::Nanoseconds now) {
    look_again(now);
    const bool is_idle = frames == seen.frames && now - seen.since >= limit_;
    if (is_idle || frames != seen.frames) seen = {frames, now};
    return is_idle;
  }

 private:
  static constexpr base::Nanoseconds kLooksPerLimit = 4;

  void look_again(base::Nanoseconds now) {
    next_look_ = std::min(next_look_, now + limit_ / kLooksPerLimit);
  }

  const base::Nanoseconds limit_;
  base::Nanoseconds next_look_ = base::kForever;
};

}  // namespace faro::endpoint
