// Ledger: what the workers of a run tell each other and the checker, beside what they send through Faro.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "faro/outcome.h"
#include "faro/query.h"
#include "faro/session.h"
#include "faro/status.h"
#include "lab/simulation/run_plan.h"
#include "lab/workload/participant.h"

namespace faro::simulation {

/// In which way a part of a query is bad.
struct BadPart {
  static constexpr uint32_t kFails = 0;
  static constexpr uint32_t kOnlyEnds = 1;
  static constexpr uint32_t kOpensOtherwise = 2;
};

/// How a query ended for one worker.
struct Ending {
  bool known = false;
  Outcome outcome = Outcome::would_wait;
  Status cause;              // of the outcome `failed`
  Status failure;            // the first operation of the query that failed before; ok if none did
  base::Nanoseconds at = 0;  // simulated
};

/// What happened in a run, for coverage.
struct Happened : workload::Counts {
  uint64_t lies = 0, lying_shuffles = 0;
  uint64_t barriers = 0;
};

/// Threads: its world's.
struct Ledger {
  struct QueryRecord {
    QueryId id;
    std::vector<bool> declared;          // by node
    std::map<uint32_t, Ending> endings;  // by worker
    /// By (stage, sender): rows made, once it is about to finish.
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> rows_made;
    /// By (stage, node, sender): rows that were handed out, of stages with Delivery::node.
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::set<uint64_t>> handed_out;
    std::set<std::pair<uint32_t, uint32_t>> stopped;  // stage and worker
    std::set<uint32_t> ending;    // workers that have nothing more to send or take
    std::set<uint32_t> said_why;  // workers whose part has failed, and that have said so at once
    std::set<uint32_t>
        said_to_end;  // nodes that have lied to the issuer that they ended their part well
    uint32_t at_barrier = 0;
    bool must_fail = false;  // a fault came that nobody can have got all rows before
    bool given_up = false;   // somebody knows that it failed: nobody is to wait for the others
    uint32_t wish_worker = UINT32_MAX;  // who is to cancel it, and how (see QueryRun)
    uint32_t wish_way = 0;
    std::map<uint32_t, uint32_t> bad_parts;  // by worker: in which way (BadPart)
  };

  std::vector<QueryRecord> queries;
  std::vector<Worker*> workers;    // by number; null while its session is not open
  std::vector<uint32_t> running;   // by node: programs of workers that have not ended
  std::set<uint32_t> misbehaving;  // nodes
  Happened happened;

  void wake(const QueryPlan& query) {
    for (const uint32_t number : query.workers) {
      if (workers[number] != nullptr) workers[number]->wake();
    }
  }
};

}  // namespace faro::simulation
