// Participant: this node's part in a query, as the commit protocol calls it (native/DESIGN.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "faro/query.h"
#include "faro/status.h"
#include "shuffle/query/cluster_view.h"
#include "shuffle/query/last_resorts.h"
#include "shuffle/query/local_workers.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_nodes.h"
#include "shuffle/query/query_stages.h"

namespace faro::shuffle {

/// A receiver of a stage that needs no more.
struct Stop {
  uint32_t stage, receiver;
  auto operator<=>(const Stop&) const = default;
};
/// Rows that a sender has for a stage which a local worker has not opened.
struct UnopenedRows {
  uint32_t worker, stage, sender;
  base::Nanoseconds since;
  /// There is one of each sender in a stage of a worker.
  bool operator<(const UnopenedRows& other) const {
    return std::tie(worker, stage, sender) < std::tie(other.worker, other.stage, other.sender);
  }
  bool is_due(base::Nanoseconds now, base::Nanoseconds timeout) const {
    return now >= since && now - since >= timeout;
  }
};

/// Runs until all its workers have ended; then it votes, and can only ask the coordinator to fail the query.
/// Threads: under the table's lock.
class Participant {
 public:
  Participant(const QueryId& query, const ClusterView& cluster);

  const LocalWorkers& workers() const { return workers_; }
  QueryStages& stages() { return stages_; }
  const QueryStages& stages() const { return stages_; }

  /// Begins with what is used here or declared; else this node only knows of the query.
  void use() { used_ = true; }
  void declare(const std::vector<uint32_t>& workers);
  /// Says of a query that is over already which workers end it, if any do.
  void name_workers(const std::vector<uint32_t>& workers) { workers_.declare(workers); }
  bool is_used() const { return used_; }
  bool is_declared() const { return declared_; }
  /// Declared, and its workers will come.
  bool is_to_be_used() const { return declared_ && !used_ && !workers_.all_have_ended(); }
  /// Workers use it and have not ended.
  bool is_in_use() const { return used_ && !workers_.all_have_ended(); }
  /// A worker's part is over. Whether it was not before.
  bool end(uint32_t worker) { return workers_.end(worker); }

  bool may_add(const Stop& stop) const;
  void add(const Stop& stop) { stops_.insert(stop); }
  std::vector<uint32_t> stops(uint32_t stage) const;

  const std::set<UnopenedRows>& unopened() const { return unopened_; }
  void add(const UnopenedRows& rows) { unopened_.insert(rows); }
  void remove_unopened(uint32_t worker, uint32_t stage);
  void remove_unopened(uint32_t worker, uint32_t stage, uint32_t sender) noexcept;
  void remove_due(base::Nanoseconds now, base::Nanoseconds timeout);
  /// A worker has ended: why the query fails if it was sent what it does not open any more.
  Status judge_unopened(uint32_t worker, const QueryNodes& nodes) const;

  /// The causes of its workers that have closed shuffles before their end.
  LastResorts& last_resorts() { return last_resorts_; }

  bool has_voted() const { return voted_; }
  void vote() { voted_ = true; }

  /// The coordinator may have decided already: asks it to fail the query, unless it was asked and has not
  /// answered.
  void ask_to_fail(const Status& cause, base::Nanoseconds now, Outbound& out);
  void coordinator_answered() { asked_.reset(); }
  /// A coordinator that does not answer keeps nobody waiting: the cause with which the query fails here,
  /// whatever the outcome will be. nullopt: nothing was asked, or there is time left.
  std::optional<Status> give_up_asking(base::Nanoseconds now, base::Nanoseconds timeout);
  bool gave_up_asking() const { return gave_up_asking_; }

  /// Forgets what a node has said in an earlier life.
  void forget_former_life(uint32_t node);

 private:
  /// Most stops of a query.
  static constexpr size_t kStopLimit = 65536;

  struct Question {
    base::Nanoseconds at;
    Status cause;
  };

  const QueryId query_;
  const ClusterView& cluster_;
  LocalWorkers workers_;
  QueryStages stages_;
  LastResorts last_resorts_;
  bool used_ = false;
  bool declared_ = false;
  bool voted_ = false;
  std::set<Stop> stops_;
  std::set<UnopenedRows> unopened_;
  std::optional<Question> asked_;
  bool gave_up_asking_ = false;
};

}  // namespace faro::shuffle
