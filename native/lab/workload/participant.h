// Participant: a worker that takes part in random queries, and what it needs of the place where it runs: the simulation, threads
// or processes of a test, a soak.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "faro/session.h"
#include "faro/shuffle.h"
#include "lab/workload/plan.h"

namespace faro::workload {

/// What happened, for coverage.
struct Counts {
  uint64_t rows = 0, bytes = 0;  // received and checked
  uint64_t unchecked_rows = 0;   // of a sender that is not to be trusted
  uint64_t unchecked_sum = 0;    // of their bytes
  uint64_t large_rows = 0;       // larger than a frame
  uint64_t stops = 0, holds = 0, detaches = 0, time_limits = 0;
  uint64_t refused_detaches = 0;           // there was no room for a copy
  uint64_t grouped = 0;                    // stages that a worker sends to groups
  uint64_t claims = 0, shrunk_claims = 0;  // shrunk: claimed above a frame, committed below one
};

enum class Step : uint32_t { idle, opens, sends, takes, finishes, waits, ends, returned };

/// Threads: the worker's.
class Participant {
 public:
  Participant(Worker& of_worker, uint64_t chance_seed, uint64_t bytes_of_ring, Counts& for_counts)
      : worker(of_worker),
        me(of_worker.number()),
        chance(chance_seed),
        ring_bytes(bytes_of_ring),
        counts(for_counts) {}
  virtual ~Participant() = default;
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  /// Between two calls of Faro: where others may run.
  virtual void between() {}
  /// A row or a batch went through.
  virtual void progress() {}
  /// What it is about to do; `peer`: a worker, if it is one.
  virtual void doing(Step, const StagePlan&, uint32_t /*peer*/ = 0) {}
  /// A row was lost, doubled, out of order or damaged, or Faro broke another promise.
  virtual void broken(const std::string&) {}
  /// Whether rows of the sender have to be what it made.
  virtual bool is_trusted(uint32_t /*sender*/) const { return true; }
  /// Rows that any worker of its node may take: a row was handed out to it. False: that was so before.
  virtual bool takes_row(const StagePlan&, uint32_t /*sender*/, uint64_t /*row*/) { return true; }
  /// It has stopped receiving.
  virtual void stops(const StagePlan&) {}
  /// Says, before it finishes a stage, how many rows it has made; asks what a sender has said.
  virtual void tell_rows_made(const StagePlan& stage, uint64_t rows) = 0;
  virtual std::optional<uint64_t> rows_made(const StagePlan& stage, uint32_t sender) const = 0;

  /// For a waiting call: mostly none.
  Wait time_limit() {
    return has_time_limits && chance.one_in(8)
               ? Wait::at_most(std::chrono::nanoseconds(chance.below(2'000'000)))
               : Wait::forever();
  }

  Worker& worker;
  const uint32_t me;  // number of the worker
  Chance chance;      // the worker's own
  const uint64_t ring_bytes;
  bool is_tight = false;         // keeps many batches, and claims too much
  bool has_time_limits = false;  // of waiting calls, now and then
  Counts& counts;
};

}  // namespace faro::workload
