// What a node of the benchmark brings back, as bytes: from a forked process through shared memory,
// or from another host through a socket.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "faro/metrics.h"
#include "faro/status.h"
#include "lab/workload/integer_rows.h"

namespace faro::bench {

/// One round of one node.
struct NodeRound {
  uint64_t elapsed_ns = 0;  ///< from the start to the end of the node's last worker
  uint64_t cpu_ns = 0;      ///< user and system time of the node
  workload::Totals rows;
};

/// All that a node brings back.
struct NodeReport {
  uint64_t connect_ns = 0;   ///< in Session::open
  uint64_t idle_cpu_ns = 0;  ///< user and system time while all workers waited for nothing
  std::vector<NodeRound> rounds;
  SessionMetrics metrics;  ///< at the end; warm-up included
};

/// A sequence of 64-bit little-endian words; see the .cc. Threads: any.
std::vector<uint64_t> encode(const NodeReport& report);

/// Reads it back. The words may come from anywhere: every count is checked against what is there.
/// Errors: protocol_error, with what is wrong.
Result<NodeReport> decode(std::span<const uint64_t> words);

/// An upper limit for the words of a report of a cluster of that shape.
uint64_t report_word_limit(uint32_t node_count, uint32_t workers_per_node, uint32_t round_count);

}  // namespace faro::bench
