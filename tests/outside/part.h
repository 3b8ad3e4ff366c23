// Part: one query at one worker, from opening its stages to its outcome.
#pragma once

#include <faro/session.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "stage.h"

namespace outside {

/// How a part ended.
struct PartEnd {
  uint32_t query = 0;
  bool done = false;
  bool troubled = false;  // it made its trouble while its query could not be done yet
  faro::Status cause;     // if not done
};

/// Threads: its worker's.
class Part {
 public:
  Part(Scene& scene, uint32_t index, const faro::QueryId& id);

  /// Every call waits: stage after stage, as a pull engine does.
  void run();
  /// One round of calls that never wait: an engine with an event loop. Returns whether anything moved.
  bool turn();
  bool over() const { return phase_ == Phase::over; }
  const PartEnd& end() const { return end_; }
  /// Nobody is to wait for what a worker merely keeps.
  void let_go_of_all() { held_.clear(), digests_.clear(); }
  /// What it does, for whoever looks into a hang.
  std::string where() const;

 private:
  enum class Phase : uint8_t { opens, runs, ends, over };

  const QueryPlan& plan() const { return scene_.plan.queries[end_.query]; }
  bool runs() const { return phase_ == Phase::runs; }
  void open();
  bool turn_stages();
  bool send(size_t stage, uint64_t rows, bool wait);
  bool receive(size_t stage, bool wait);
  bool settle(faro::Outcome outcome, Stage& stage);
  void keep(faro::Batch batch);
  void let_go_of_one();
  void make_trouble();
  void begin_to_end();
  bool end_query(bool wait);

  Scene& scene_;
  const faro::QueryId id_;
  Phase phase_ = Phase::opens;
  PartEnd end_;
  faro::Status failure_;  // of this part
  std::deque<Stage> stages_;
  std::vector<faro::Batch> held_;
  std::vector<uint64_t> digests_;  // of what is held
  uint64_t steps_ = 0;
};

}  // namespace outside
