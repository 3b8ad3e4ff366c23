// AggregationSpec: what to aggregate (faro/aggregate.h). AggregationMetrics: what was done.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "faro/query.h"

#pragma GCC visibility push(default)

namespace faro {

/// What to aggregate. Every worker that takes part makes one with an equal spec.
struct AggregationSpec {
  QueryId query;
  uint32_t stage = 0;                 ///< it takes this one, as a shuffle does
  std::vector<uint32_t> senders{};    ///< who adds rows; as ShuffleSpec::senders
  std::vector<uint32_t> receivers{};  ///< who gets groups; as ShuffleSpec::receivers
  /// For measurements: rows meet a table of exactly that many states, a power of two from 4096
  /// on, before they are sent; with 0 they pass. Without it that is decided by what is measured.
  std::optional<uint32_t> table_states{};
};

/// What an aggregation has done at this worker until now.
struct AggregationMetrics {
  uint64_t rows = 0;             ///< added here
  uint64_t rows_passed = 0;      ///< of these: sent without meeting a table
  uint64_t states_sent = 0;      ///< rows that passed, and groups of full tables
  uint64_t states_received = 0;  ///< from all senders
  uint64_t groups = 0;           ///< handed out here
  uint64_t table_states = 0;     ///< of the table that rows meet now; 0: they pass
  uint64_t most_table_states = 0;
  uint64_t partitions_split = 0;  ///< they had more groups than fit the cache
  uint64_t spilled_bytes = 0;     ///< of states, through overflow
  uint64_t peak_bytes = 0;        ///< of operator.memory_bytes
};

}  // namespace faro

#pragma GCC visibility pop
