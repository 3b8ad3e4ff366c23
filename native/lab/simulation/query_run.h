// QueryRun: one query at one worker, from opening its stages to its outcome.
#pragma once

#include <cstdint>
#include <string>

#include "lab/simulation/scene.h"
#include "lab/workload/part.h"

namespace faro::simulation {

/// Threads: its fiber.
class QueryRun {
 public:
  QueryRun(Scene& scene, uint32_t index);

  /// Every call blocks.
  void run();

  /// One round of calls that never block: an engine with an event loop. Returns whether anything moved.
  bool turn();
  bool over() const { return phase_ == Phase::over; }

 private:
  enum class Phase : uint8_t { opens, runs, meets, ends, over };

  const QueryPlan& plan() const { return scene_.plan.queries[index_]; }
  Ledger::QueryRecord& record() { return scene_.ledger.queries[index_]; }

  void open();
  void play_bad_part(uint32_t way);
  bool turn_part();
  bool meet(bool wait);
  bool end(bool wait);
  void arrive_at_barrier();
  Status look_for_wish();
  void failed(const Status& cause);
  /// For reports of a run that hangs.
  void note(std::string what);
  void leave_stages();
  void begin_to_end();
  void end_by_failure();

  Scene& scene_;
  const uint32_t index_;
  workload::Part part_;
  Phase phase_ = Phase::opens;
  bool counted_at_barrier_ = false;
  bool cancels_when_closed_ = false;
  bool says_why_ = false;  // its part fails, and it says so
  Status failure_;
  Status part_failure_;  // with which it ends
};

}  // namespace faro::simulation
