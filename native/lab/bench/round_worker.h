// What one worker of a Faro contestant does in each round, whoever starts the rounds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "faro/session.h"
#include "faro/status.h"
#include "lab/workload/integer_rows.h"

namespace faro::bench {

/// Threads: that of its worker.
class RoundWorker {
 public:
  virtual ~RoundWorker() = default;

  /// Does the job once, as one query in which every worker of the cluster takes part.
  ///
  /// Blocks: until the query's outcome is known here.
  /// Errors: those of the query; the worker is of no use afterwards.
  virtual Status run(const QueryId& query) = 0;

  /// What it saw in the last round.
  virtual workload::Totals totals() const = 0;
};

/// Makes the RoundWorker of one worker of a session, on its thread. It stores how many rows it has consumed to
/// `progress` now and then (relaxed); all arguments outlive it.
using MakeRoundWorker = std::function<std::unique_ptr<RoundWorker>(
    Session& session, Worker& worker, std::atomic<uint64_t>& progress)>;

}  // namespace faro::bench
