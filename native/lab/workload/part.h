// Part: a worker's part in a query, from opening its stages to the last row. Rows that come make rows of the next stage; batches are
// held and detached.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "lab/workload/stage.h"

namespace faro::workload {

/// Threads: the worker's.
class Part {
 public:
  /// `plan` stays as long as this.
  Part(Participant& participant, const QueryPlan& plan);

  /// Called before each operation; an error: the part is to fail with it.
  std::function<Status()> look = [] { return Status::Ok(); };

  /// The stages, in any order. `otherwise`: what is different for this worker, if anything is.
  Status open(const QueryId& id,
              const std::function<void(const Stage&, ShuffleSpec&)>& otherwise = {});

  /// Every call blocks. A pull engine takes each stage to its end before the next; others send all there is of all stages at
  /// first, and take only now and then before.
  Status run();
  /// One round of calls that never block: an engine with an event loop. Returns whether anything moved.
  bool turn();
  /// Rounds to the end, with short sleeps where nothing moves.
  Status run_in_turns();

  /// All is sent and taken, or it has failed.
  bool over() const;
  const Status& failure() const { return failure_; }
  std::deque<Stage>& stages() { return stages_; }
  /// Gives back all batches that it holds.
  void give_back_all();
  /// Gives back all batches that it holds, and closes the shuffles.
  void close();

 private:
  struct Held {
    Batch batch;
    uint64_t digest;  // of its bytes, when they were checked
    uint32_t sender;  // a worker
    bool is_trusted;
  };

  bool goes_on();
  bool send(size_t number, uint64_t rows, bool wait);
  bool finish(size_t number, bool wait);
  bool receive(size_t number, bool wait);
  /// What an operation answered. Returns whether something moved.
  bool settle(Outcome outcome, Stage& stage);
  void keep(Batch batch, const Stage& stage);
  void give_back(size_t number);
  bool give_back_some();
  void fail(const Status& cause);

  Participant& participant_;
  std::deque<Stage> stages_;
  std::vector<Held> held_;
  Status failure_;
};

}  // namespace faro::workload
