// Queries: what an engine does with queries on the sessions of its nodes: each worker of a query sends
// a row to each worker, and takes one of each.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "faro/shuffle.h"
#include "sim/node_state/engine.h"
#include "sim/node_state/plan.h"
#include "sim/node_state/process.h"

namespace faro::node_state {

struct QueryRun {
  QueryId id;
  std::string name;
  std::vector<uint32_t> workers;
  bool is_declared = true;         // else it is of all workers
  std::set<uint32_t> nodes;        // its issuer and those of its workers
  std::set<uint32_t> declared_on;  // of these, and each knew all of them
};

/// A worker's part of a query.
struct Part {
  enum Step { opens, sends, finishes, receives, closes, ends, over };
  QueryRun* query = nullptr;
  Process* process = nullptr;
  uint32_t worker = 0;
  Step step = opens;
  uint32_t rows = 0;
  Shuffle shuffle;
  Batch held;  // of its rows
};

/// Threads: one.
class Queries {
 public:
  /// Both outlive it.
  Queries(const Plan& plan, Engine& engine) : plan_(plan), engine_(engine) {}
  Queries(const Queries&) = delete;
  Queries& operator=(const Queries&) = delete;

  const std::vector<std::unique_ptr<QueryRun>>& all() const { return queries_; }
  /// Those parts that are not over, or whose worker still holds a batch.
  std::vector<Part*> parts();
  /// Whether the worker may go on with it.
  bool is_acting(const Part& part) {
    return part.step != Part::over && engine_.acting(part.process->number()) == part.process;
  }

  /// A query of these workers. One that is not declared begins on every node.
  QueryRun& begin(Process& issuer, std::vector<uint32_t> workers, bool is_declared);
  void declare(Process& on, QueryRun& query);
  void cancel(Process& on, const QueryRun& query);
  /// A step, as far as it goes without waiting. `keeps`: what it receives.
  void go_on(Part& part, bool keeps);
  void fail(Part& part);
  void release(Part& part);
  /// The workers of a process close what they have open. `keeps`: what they hold stays.
  void drop(const Process& process, bool keeps);

 private:
  void add_parts(Process& process, QueryRun& query);
  Outcome open(Part& part, Status& why);
  Outcome take_rows(Part& part, bool keeps);
  uint32_t node_of(uint32_t worker) const { return worker / plan_.workers_per_node; }
  Worker& worker_of(const Part& part) {
    return part.process->session().worker(part.worker % plan_.workers_per_node);
  }

  const Plan& plan_;
  Engine& engine_;
  std::vector<std::unique_ptr<QueryRun>> queries_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace faro::node_state
