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

// One list of members for words and JSON: visit(name, member).
template <class Metrics, class Visit>
void each_worker_metric(Metrics& w, Visit visit) {
  visit("worker", w.worker), visit("rows_sent", w.rows_sent),
      visit("rows_received", w.rows_received), visit("rows_dropped", w.rows_dropped);
  visit("waits", w.waits), visit("sleeps", w.sleeps), visit("blocked_ns", w.blocked_ns),
      visit("frames_spilled", w.frames_spilled);
  visit("bytes_spilled", w.bytes_spilled), visit("frames_out_overflow", w.frames_out_overflow),
      visit("bytes_out_overflow", w.bytes_out_overflow);
  visit("open_shuffles", w.open_shuffles), visit("operations", w.operations),
      visit("held_frames", w.held_frames);
}
template <class Metrics, class Visit>
void each_link_metric(Metrics& l, Visit visit) {
  visit("node", l.node), visit("connected", l.connected), visit("frames_sent", l.frames_sent),
      visit("bytes_sent", l.bytes_sent);
  visit("transfers", l.transfers), visit("frames_received", l.frames_received),
      visit("bytes_received", l.bytes_received);
  visit("read_notifications", l.read_notifications), visit("posts", l.posts),
      visit("writes", l.writes), visit("notifications", l.notifications);
  visit("credit_returns", l.credit_returns), visit("signalled_posts", l.signalled_posts),
      visit("completions", l.completions);
  visit("network_events", l.network_events), visit("no_room", l.no_room),
      visit("unreleased_bytes", l.unreleased_bytes);
}
template <class Metrics, class Visit>
void each_lane_metric(Metrics& l, Visit visit) {
  visit("sender", l.sender), visit("receiver", l.receiver), visit("frames_sent", l.frames_sent),
      visit("bytes_sent", l.bytes_sent);
  visit("transfers", l.transfers), visit("frames_received", l.frames_received),
      visit("bytes_received", l.bytes_received);
  visit("read_notifications", l.read_notifications), visit("no_room", l.no_room),
      visit("unreleased_bytes", l.unreleased_bytes);
}
template <class Metrics, class Visit>
void each_session_metric(Metrics& s, Visit visit) {
  visit("overflow_memory_bytes", s.overflow_memory_bytes),
      visit("overflow_memory_peak_bytes", s.overflow_memory_peak_bytes);
  visit("overflow_file_bytes", s.overflow_file_bytes),
      visit("overflow_file_peak_bytes", s.overflow_file_peak_bytes);
  visit("queries_running", s.queries_running), visit("queries_failed", s.queries_failed);
}

/// A sequence of 64-bit little-endian words; see the .cc. Nodes of other builds read it, so it has what it had in the first of them
/// (tests/compatibility). Threads: any.
std::vector<uint64_t> encode(const NodeReport& report);

/// Reads it back. The words may come from anywhere: every count is checked against what is there.
/// Errors: protocol_error, with what is wrong.
Result<NodeReport> decode(std::span<const uint64_t> words);

/// An upper limit for the words of a report of a cluster of that shape.
uint64_t report_word_limit(uint32_t node_count, uint32_t workers_per_node, uint32_t round_count);

}  // namespace faro::bench
