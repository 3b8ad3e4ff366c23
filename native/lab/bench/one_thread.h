// What jobs share of which one thread has all workers, so that its clock tells what each side takes.
#pragma once

#include <cstdint>
#include <vector>

#include "faro/session.h"
#include "faro/status.h"
#include "lab/bench/process_group.h"

namespace faro::bench {

/// CPU time of this thread in laps of some microseconds, without what looking at the clock takes: half a microsecond each on some
/// machines.
class LapTime {
 public:
  void start() noexcept { start_ns_ = thread_cpu_ns(); }
  void stop() noexcept {
    ns_ += thread_cpu_ns() - start_ns_;
    ++laps_;
  }
  double ns(double empty_lap_ns) const noexcept {
    return static_cast<double>(ns_) - static_cast<double>(laps_) * empty_lap_ns;
  }

  static double empty_lap_ns() noexcept {
    constexpr uint32_t kLaps = 10'000;
    LapTime time;
    for (uint32_t lap = 0; lap < kLaps; ++lap) {
      time.start();
      time.stop();
    }
    return time.ns(0) / kLaps;
  }

 private:
  uint64_t start_ns_ = 0;
  uint64_t ns_ = 0;
  uint64_t laps_ = 0;
};

/// Ends the query at all workers of a session of one node.
inline Status end_everywhere(Session& session, const QueryId& query) {
  std::vector<bool> has_ended(session.worker_count());
  for (size_t left = has_ended.size(); left > 0;) {
    for (uint32_t w = 0; w < has_ended.size(); ++w) {
      if (has_ended[w]) continue;
      const Outcome outcome = session.worker(w).end_query(query, Wait::none());
      if (outcome == Outcome::failed) return session.worker(w).status();
      has_ended[w] = outcome == Outcome::done;
      if (has_ended[w]) --left;
    }
  }
  return Status::Ok();
}

}  // namespace faro::bench
