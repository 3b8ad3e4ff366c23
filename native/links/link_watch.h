// LinkWatch: when the links of a table have to be looked at. Links that are idle are not: a look costs nothing for those.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace faro::links {

/// Threads: network thread. Links and their table tell it what has changed since all links were looked at; LinkMonitor asks.
class LinkWatch {
 public:
  /// A link has come, whose peer was heard at that time.
  void note_added(base::Nanoseconds heard) noexcept { added_ = std::min(added_, heard); }
  /// A link has to be looked at then: it is suspended until then, or its peer is lost if it stays silent.
  void note_due(base::Nanoseconds at) noexcept { due_ = std::min(due_, at); }
  /// A link is being mended from now on, or not any more.
  void note_mending(bool begins) noexcept { mending_ += begins ? 1 : -1; }
  /// A link's work, or its ending, was interrupted: the next look completes it.
  void note_interrupted() noexcept { is_interrupted_ = true; }

  /// When to look, given how long a peer that joins may be silent.
  base::Nanoseconds due(base::Nanoseconds joining) const noexcept {
    return added_ == base::kForever ? due_ : std::min(due_, base::deadline_after(added_, joining));
  }
  bool is_interrupted() const noexcept { return is_interrupted_; }
  /// How many links are being mended.
  int mending() const noexcept { return mending_; }
  /// All links are looked at now; each says by note_due when it has to be looked at again.
  void begin_look() noexcept {
    added_ = due_ = base::kForever;
    is_interrupted_ = false;
  }

 private:
  base::Nanoseconds added_ = base::kForever;  // the earliest
  base::Nanoseconds due_ = base::kForever;
  bool is_interrupted_ = false;
  int mending_ = 0;
};

}  // namespace faro::links
