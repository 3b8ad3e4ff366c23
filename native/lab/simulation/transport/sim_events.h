// EventQueue: what is under way in a simulated world and happens at a later time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lab/simulation/transport/sim_conditions.h"

namespace faro::sim {

class EventQueue {
 public:
  struct Event {
    Nanoseconds when;
    uint64_t number;
    const char* what;
    std::function<void()> run;
  };

  /// Events of equal time come in the order in which they were added. `what` is a literal.
  void add(Nanoseconds when, const char* what, std::function<void()> run) {
    events_.push_back({when, count_++, what, std::move(run)});
    std::push_heap(events_.begin(), events_.end(), LaterFirst{});
  }
  bool empty() const noexcept { return events_.empty(); }
  size_t size() const noexcept { return events_.size(); }
  /// When the next one is due.
  Nanoseconds next() const { return empty() ? base::kForever : events_.front().when; }
  Event take() {
    std::pop_heap(events_.begin(), events_.end(), LaterFirst{});
    Event event = std::move(events_.back());
    events_.pop_back();
    return event;
  }

 private:
  struct LaterFirst {
    bool operator()(const Event& a, const Event& b) const noexcept {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };

  std::vector<Event> events_;  // a heap by LaterFirst
  uint64_t count_ = 0;
};

}  // namespace faro::sim
