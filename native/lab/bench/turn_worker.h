// A RoundWorker whose job is a loop over turns that never wait.
#pragma once

#include <atomic>

#include "lab/bench/round_worker.h"

namespace faro::bench {

/// Threads: that of its worker.
class TurnWorker : public RoundWorker {
 public:
  Status run(const QueryId& query) final;

 protected:
  /// `worker` and `progress` outlive it.
  TurnWorker(Worker& worker, std::atomic<uint64_t>& progress)
      : worker_(worker), progress_(progress) {}

  /// Opens the shuffles of a round.
  virtual Status open(const QueryId& query) = 0;
  /// Does what can be done without waiting; false if that was nothing. True when it is over.
  virtual bool turn() = 0;
  virtual bool over() const = 0;
  /// Closes the shuffles. Errors: what ended the round early.
  virtual Status close() = 0;

  Worker& worker_;
  std::atomic<uint64_t>& progress_;
};

}  // namespace faro::bench
