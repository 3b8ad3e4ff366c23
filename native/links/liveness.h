// Liveness: when to say that we are alive, and when a peer is not.
//
// A peer that is silent for longer than the limit is lost. A node that was stopped, or whose network
// thread got no processor, finds old times everywhere, although its peers were not silent. So silence is
// only judged after all connections have been read, and a late pass gives every peer the full time again
// (native/DESIGN.md#hc-13).
#pragma once

#include "base/clock.h"

namespace faro::links {

/// Threads: network thread. All times are of one clock and passed in.
class Liveness {
 public:
  /// Heartbeats in the time limit: three may be lost or late before the fourth is missed.
  static constexpr int kBeatsPerLimit = 4;

  /// What is kept for each peer.
  struct Peer {
    base::Nanoseconds heard = 0;  // anything at all arrived then
  };

  Liveness(base::Nanoseconds limit, base::Nanoseconds now)
      : limit_(limit),
        interval_(limit / kBeatsPerLimit),
        last_pass_(now),
        next_beat_(now + interval_) {}

  /// Begins a pass, after all connections have been read. If the pass is more than an interval late, silence
  /// before now proves nothing.
  void begin_pass(base::Nanoseconds now) {
    if (now > last_pass_ + 2 * interval_) judged_from_ = now;
    last_pass_ = now;
    beat_ = now >= next_beat_;
    if (beat_) next_beat_ = now + interval_;
  }
  /// A peer's heartbeat has arrived. Sends ours now, too, so that the nodes of a cluster beat together and an idle
  /// node wakes once per interval, not once per peer. At most twice per interval.
  void beat_along(base::Nanoseconds now) {
    if (now + interval_ / 2 >= next_beat_) next_beat_ = now;
  }

  /// In this pass every peer gets a heartbeat and every time limit is checked.
  bool beat() const { return beat_; }

  bool silent(const Peer& peer, base::Nanoseconds now) const { return now >= expiry(peer); }
  /// When a peer is lost if it stays silent.
  base::Nanoseconds expiry(const Peer& peer) const {
    return (peer.heard > judged_from_ ? peer.heard : judged_from_) + limit_;
  }
  /// When the next pass has to be, for the heartbeats.
  base::Nanoseconds next_beat() const { return next_beat_; }
  base::Nanoseconds limit() const { return limit_; }
  base::Nanoseconds interval() const { return interval_; }
  /// When the last pass began.
  base::Nanoseconds last_pass() const { return last_pass_; }

 private:
  const base::Nanoseconds limit_;
  const base::Nanoseconds interval_;
  base::Nanoseconds last_pass_;
  base::Nanoseconds next_beat_;
  base::Nanoseconds judged_from_ = 0;
  bool beat_ = false;
};

}  // namespace faro::links
