// What the parts of a simulated world have in common: its time, its chance, and which processes are
// stopped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/clock.h"
#include "lab/simulation/transport/sim_knobs.h"
#include "lab/simulation/transport/sim_random.h"

namespace faro::sim {

using base::Nanoseconds;

/// Fibers and agents that stop together: a process. Small numbers; kNoGroup is never stalled.
using Group = uint32_t;
inline constexpr Group kNoGroup = UINT32_MAX;

/// When a world begins; not 0: nobody may rely on that.
inline constexpr Nanoseconds kWorldStart = 1'000'000'000;

/// In texts time counts from the beginning of the world.
inline double at_ms(Nanoseconds when) {
  return static_cast<double>(when - std::min(when, kWorldStart)) / 1e6;
}

/// Processes that are stopped and go on.
class Stalls {
 public:
  void stall(Group group, Nanoseconds until) {
    if (group >= until_.size()) until_.resize(group + 1);
    until_[group] = std::max(until_[group], until);
  }
  /// `when`, or when the group goes on if that is later.
  Nanoseconds not_before(Group group, Nanoseconds when) const {
    return group < until_.size() ? std::max(when, until_[group]) : when;
  }

 private:
  std::vector<Nanoseconds> until_;  // by group
};

/// Refers to what belongs to the world.
struct Conditions {
  Random& random;
  const Knobs& knobs;
  const Stalls& stalls;
  const Nanoseconds& now;

  /// How often someone is chosen differs a lot within a run, so that there are runs in which one
  /// worker or the network is far ahead of the others all the time.
  uint32_t draw_weight() const {
    constexpr uint32_t kWeights[] = {1, 1, 4, 16};
    return kWeights[random.below(std::size(kWeights))];
  }
  /// When an agent of this group runs that is woken now.
  Nanoseconds draw_wake_up(Group group) const {
    return stalls.not_before(group, now + knobs.wake_up.draw(random));
  }
};

}  // namespace faro::sim
