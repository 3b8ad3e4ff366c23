// StageRun: one stage at one worker. Makes rows, sends them in every way there is, and checks what
// arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "faro/outcome.h"
#include "faro/session.h"
#include "faro/shuffle.h"
#include "lab/simulation/chance.h"
#include "lab/simulation/cluster.h"
#include "lab/simulation/ledger.h"
#include "lab/simulation/row_generator.h"
#include "lab/simulation/run_plan.h"

namespace faro::simulation {

/// What a worker's program has around it.
struct Scene {
  Cluster& cluster;
  const RunPlan& plan;
  Ledger& ledger;
  Worker& worker;
  const uint32_t node;
  const uint32_t me;  // number of the worker
  Chance chance;      // the worker's own

  sim::World& world() { return cluster.world(); }
  /// Between two calls: where a thread may lose the processor.
  void between() { cluster.world().maybe_yield(); }
  /// For a waiting call: mostly none.
  Timeout time_limit() {
    return chance.one_in(8) ? Timeout(static_cast<int64_t>(chance.below(2'000'000))) : kNoTimeout;
  }
};

/// Threads: its fiber. Every call answers an outcome as the public API does; a broken promise of Faro
/// is a violation of the world.
class StageRun {
 public:
  /// `rows`: how many this worker makes, if it sends at all. `enough_rows`: it stops receiving after so
  /// many.
  StageRun(Scene& scene, const StagePlan& plan, uint64_t rows, uint64_t enough_rows);

  /// `otherwise`: not as the others do, with one sender more or less.
  Status open(const QueryId& id, bool otherwise);
  /// It and others send or receive here, so that it is missed.
  bool is_shared() const;
  /// Has something to send.
  bool has_rows() const { return sends_ && made_ < rows_; }
  bool finished() const { return finished_; }
  /// finish was called, or is not needed.
  bool finishing() const { return finishing_; }
  bool ended() const { return ended_; }
  bool stopped() const { return stopped_; }
  Shuffle& shuffle() { return shuffle_; }
  /// Nothing hostile spoke for this sender.
  bool is_trusted(uint32_t sender) const;

  /// Sends up to that many rows in one of the ways there are. Moving: see rows_made. After `stopped`
  /// there is nothing more to send.
  Outcome send_some(uint64_t rows, bool wait);
  uint64_t rows_made() const { return made_; }
  Outcome finish(bool wait);
  /// The next batch, checked; `end_of_stream` once, with everything compared.
  Outcome receive(bool wait, Batch& batch);

 private:
  struct Source {
    uint64_t next = 0;      // number of the sender's next row that is for this worker
    uint64_t received = 0;  // number of the last one, plus one
    bool ended = false;     // by take_from
  };
  Outcome send_next(bool wait);
  Outcome send_typed(uint64_t rows, bool wait);
  Outcome send_by_claim(bool wait);
  uint64_t draw_claimed_too_much();
  Outcome sent(Outcome outcome, uint64_t bytes);
  Outcome take(bool wait, Batch& batch);
  void check(const Batch& batch);
  void check_end();
  void broken(const std::string& what);

  Scene& scene_;
  const RowGenerator generator_;
  const uint32_t my_receiver_;
  const bool sends_;
  const bool receives_;
  uint64_t rows_;
  const uint64_t enough_rows_;
  const bool one_by_one_;  // takes sender by sender
  uint64_t made_ = 0;
  uint64_t taken_ = 0;
  bool stopped_ = false;
  bool opened_otherwise_ = false;  // it cannot know its end of stream
  bool finishing_;
  bool finished_;
  bool ended_;
  std::map<uint32_t, Source> sources_;  // by sender
  std::vector<std::byte> row_;
  std::vector<uint32_t> to_;
  Shuffle shuffle_;
};

}  // namespace faro::simulation
