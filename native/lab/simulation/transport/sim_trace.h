// Trace: what a simulated world has decided: a hash of everything, and the last decisions for people.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "lab/simulation/transport/sim_conditions.h"

namespace faro::sim {

class Trace {
 public:
  enum class Kind : uint8_t { fiber, agent, event };

  /// `number` of the fiber, agent or event that runs now; `name` stays valid.
  void record(uint64_t step, Nanoseconds now, Kind kind, uint64_t number, std::string_view name);
  /// Equal for equal runs.
  uint64_t hash() const noexcept { return hash_; }
  /// The last decisions, a line each.
  std::string text() const;

 private:
  struct Decision {
    uint64_t step;
    Nanoseconds now;
    std::string_view name;
  };
  static constexpr size_t kLength = 60;

  std::deque<Decision> decisions_;
  uint64_t hash_ = 0;
};

}  // namespace faro::sim
