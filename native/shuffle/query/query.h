// Query: one query as the workers of this node see it.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "faro/query.h"
#include "faro/status.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/query/node_stage.h"
#include "shuffle/query/shuffle_counts.h"
#include "wire/query_message.h"

namespace faro::shuffle {

inline wire::QueryKey to_key(const QueryId& id) {
  return {id.counter, id.incarnation, id.issuer, 0};
}
inline QueryId to_id(const wire::QueryKey& key) {
  return {key.counter, key.incarnation, key.issuer, 0};
}

/// Shared by the table, which makes it (query_table.h), and by the workers that use it. Threads: any.
class Query {
 public:
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  const QueryId id;
  OverflowUsage usage;
  QueryShuffles shuffles;
  NodeStages node_stages;

  /// Acquire: cause() is set when this is true.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  bool outcome_known() const noexcept { return outcome_known_.load(std::memory_order_acquire); }
  /// The first failure here, or the one that the coordinator told. After failed().
  const Status& cause() const noexcept { return cause_; }
  /// The coordinator's decision, or why there will be none. After outcome_known().
  const Status& outcome() const noexcept { return outcome_; }
  /// Who takes part; empty: all, or it is not known yet. Constant once a worker uses the query.
  const std::vector<uint32_t>& declared_workers() const noexcept { return declared_workers_; }

 protected:
  explicit Query(const QueryId& query_id) : id(query_id) {}
  ~Query() = default;

  /// Once each, under the table's lock.
  void set_declared(const std::vector<uint32_t>& workers) { declared_workers_ = workers; }
  void set_failed(const Status& cause) {
    cause_ = cause;
    failed_.store(true, std::memory_order_release);
  }
  void set_outcome(const Status& outcome) {
    outcome_ = outcome;
    outcome_known_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> failed_{false};
  std::atomic<bool> outcome_known_{false};
  Status cause_;    // written before failed_ is set
  Status outcome_;  // written before outcome_known_ is set
  std::vector<uint32_t> declared_workers_;
};

}  // namespace faro::shuffle
