// QueryRun: one query at one worker, from opening its stages to its outcome.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "lab/simulation/ledger.h"
#include "lab/simulation/stage_run.h"

namespace faro::simulation {

/// Threads: its fiber.
class QueryRun {
 public:
  QueryRun(Scene& scene, uint32_t index);

  /// Every call blocks: stage after stage, as a pull engine does.
  void run();

  /// One round of calls that never block: an engine with an event loop. Returns whether anything moved.
  bool turn();
  bool over() const { return phase_ == Phase::over; }

 private:
  enum class Phase : uint8_t { opens, runs, meets, ends, over };
  struct Held {
    Batch batch;
    uint64_t digest;  // of its bytes, when they were checked
    bool is_trusted;
  };

  const QueryPlan& plan() const { return scene_.plan.queries[index_]; }
  Ledger::QueryRecord& record() { return scene_.ledger.queries[index_]; }

  void open();
  void play_bad_part(uint32_t way);
  void run_stage(size_t number);
  bool turn_stages();
  bool receive(size_t number, bool wait);
  bool send(size_t number, uint64_t rows, bool wait);
  bool finish(size_t number, bool wait);
  bool meet(bool wait);
  bool end(bool wait);
  void arrive_at_barrier();
  /// What an operation answered. Returns whether something moved.
  bool settle(Outcome outcome, StageRun& stage);
  void keep(Batch batch, const StageRun& stage);
  void let_go_of(size_t number);
  bool let_go_of_some();
  void let_go_of_all();
  void look_for_wish();
  void failed(const Status& cause);
  /// For reports of a run that hangs.
  void note(std::string what);
  void leave_stages();
  void begin_to_end();
  bool all_stages_over() const;

  Scene& scene_;
  const uint32_t index_;
  Phase phase_ = Phase::opens;
  bool counted_at_barrier_ = false;
  Status failure_;
  Status part_failure_;  // with which it ends
  std::deque<StageRun> stages_;
  std::vector<Held> held_;
};

}  // namespace faro::simulation
