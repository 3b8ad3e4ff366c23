// QueryReport: what an observer sees of this node's queries: the counter file, and the lines of the log.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "counters/counter_file.h"
#include "faro/query.h"
#include "faro/status.h"

namespace faro::shuffle {

/// Threads: under the table's lock; failed_count(): any.
class QueryReport {
 public:
  explicit QueryReport(const std::string& node_name) : node_name_(node_name) {}

  /// Shows queries in `file` from now on, which outlives this.
  void show_in(counters::CounterFile& file);
  /// Gives a query a slot of the file if it has none. Whether it has one then: unverified queries leave
  /// room for what this node does itself.
  bool give_slot(std::optional<uint32_t>& slot, bool is_unverified);
  void show(uint32_t slot, const counters::QueryState& state);
  void hide(std::optional<uint32_t>& slot);
  void show_running(uint64_t count);

  void count_failure();
  uint64_t failed_count() const { return failed_count_.load(std::memory_order_relaxed); }
  /// One line for one cause, which names the peer if it was one.
  void log_failures(std::vector<QueryId> ids, const Status& cause) const;

 private:
  const std::string& node_name_;
  counters::CounterFile* file_ = nullptr;
  std::vector<uint32_t> free_slots_;
  std::atomic<uint64_t> failed_count_{0};
};

}  // namespace faro::shuffle
