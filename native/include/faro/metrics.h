// Counters, always on. Snapshots are not atomic over counters: each value is exact, together they
// are of about one moment.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstdint>
#include <string>
#include <vector>

#include "faro/query.h"

#pragma GCC visibility push(default)

namespace faro {

/// One lane: from one worker to another, its rings added up. A local worker is at one end or at
/// both.
struct LaneMetrics {
  uint32_t sender = 0;
  uint32_t receiver = 0;
  uint64_t frames_sent = 0;      ///< 0 if the sender is on another node
  uint64_t bytes_sent = 0;       ///< with headers and padding
  uint64_t transfers = 0;        ///< started by the sender
  uint64_t no_room = 0;          ///< times that a frame found no room in its ring
  uint64_t frames_received = 0;  ///< 0 if the receiver is on another node
  uint64_t bytes_received = 0;
  uint64_t read_notifications = 0;  ///< by the receiver
  uint64_t unreleased_bytes = 0;    ///< taken and not released now: held, or not polled
};

struct LinkMetrics {
  uint32_t node = 0;
  std::string transport;  ///< "shm", "tcp", "verbs"; "local" for the own node
  bool connected = true;
  uint64_t frames_sent = 0, bytes_sent = 0, transfers = 0, no_room = 0;
  uint64_t frames_received = 0, bytes_received = 0, read_notifications = 0, unreleased_bytes = 0;
  // These seven count what the network device does; they are 0 for transports without one.
  uint64_t posts = 0;            ///< calls that hand over work requests
  uint64_t writes = 0;           ///< work requests that carry rows
  uint64_t notifications = 0;    ///< messages that tell of rows, or of rows read
  uint64_t credit_returns = 0;   ///< messages that only return credits
  uint64_t signalled_posts = 0;  ///< reported when completed
  uint64_t completions = 0;      ///< taken, of what was sent and received
  uint64_t network_events = 0;   ///< that woke the network thread to take some
  // With network.schedule, where the transport has turns.
  uint64_t turns = 0;       ///< in which rows could be sent
  uint64_t turn_bytes = 0;  ///< of frames sent in these; the rest of bytes_sent went without a turn
};

struct WorkerMetrics {
  uint32_t worker = 0;
  uint64_t rows_sent = 0;       ///< in closed frames
  uint64_t rows_received = 0;   ///< handed out
  uint64_t rows_dropped = 0;    ///< for receivers that had stopped
  uint64_t waits = 0;           ///< operations that could not be done at once
  uint64_t sleeps = 0;          ///< on the doorbell
  uint64_t blocked_ns = 0;      ///< in waits
  uint64_t frames_spilled = 0;  ///< incoming, moved to overflow
  uint64_t bytes_spilled = 0;
  uint64_t frames_out_overflow = 0;  ///< outgoing, sent by way of overflow
  uint64_t bytes_out_overflow = 0;
  uint64_t open_shuffles = 0;
  uint64_t operations = 0;   ///< calls that looked at rings, queries or alerts
  uint64_t held_frames = 0;  ///< that the engine holds in place now
};

/// What a shuffle has sent to one of its receivers. Bytes, here and in ReceivedMetrics, are those
/// of rows, with the length of each if they have one.
struct SentMetrics {
  /// Index in ShuffleSpec::receivers; unless Delivery is `worker`, that of a node, in the order in
  /// which these are first mentioned there.
  uint32_t receiver = 0;
  uint64_t rows = 0;  ///< in closed frames; after finish() all, without those that were dropped
  uint64_t bytes = 0;
  uint64_t frames = 0;  ///< a row too large for a frame counts as one
  uint64_t no_room =
      0;  ///< times that a call found no room for a row, or the end, on the way to it
  uint64_t rows_out_overflow = 0;  ///< of `rows`: sent by way of overflow
  uint64_t bytes_out_overflow = 0;
};

/// What a shuffle has received from one of its senders.
struct ReceivedMetrics {
  uint32_t sender = 0;  ///< index in ShuffleSpec::senders
  uint64_t rows = 0;    ///< handed out
  uint64_t bytes = 0;
  uint64_t batches = 0;
  uint64_t rows_spilled = 0;  ///< moved from the ring to overflow before they were handed out
  uint64_t bytes_spilled = 0;
};

/// One shuffle of one worker (Shuffle::metrics). The time that it was blocked is that of calls
/// which wait, of wait_until() whose condition tried this shuffle last, and of workers armed for
/// one call (Progress::call). What an engine does between two calls with Wait::none() is not known:
/// these count without time.
struct ShuffleMetrics {
  QueryId query{};
  uint32_t stage = 0;
  uint32_t worker = 0;
  uint64_t blocked_on_room = 0;     ///< calls that send or finish and could not be done at once
  uint64_t blocked_on_room_ns = 0;  ///< in such waits that are over
  uint64_t blocked_on_rows = 0;     ///< calls that receive and could not be done at once
  uint64_t blocked_on_rows_ns = 0;
  /// By receiver, in the order of ShuffleSpec::receivers; none if the worker is no sender.
  std::vector<SentMetrics> sent;
  /// By sender, in the order of ShuffleSpec::senders; none if the worker is no receiver.
  std::vector<ReceivedMetrics> received;
};

enum class OperatorKind : uint8_t { aggregation = 1, join = 2 };

/// What operators have done (faro/aggregate.h, faro/join.h), as of the end of the last call of
/// each.
struct OperatorCounts {
  uint64_t rows_in = 0;   ///< added, to a join those of both sides
  uint64_t rows_out = 0;  ///< groups or pairs handed out
  /// By an aggregation: rows that passed its table, and groups of full tables. rows_in over these
  /// is the reduction.
  uint64_t states_sent = 0;
  uint64_t rows_arrived = 0;        ///< states at an aggregation, rows of both sides at a join
  uint64_t partitions_spilled = 0;  ///< times that one was
  uint64_t spilled_bytes = 0;
  uint64_t partitions_split = 0;  ///< they did not fit the cache
  uint64_t passes = 0;            ///< by a join: times that probe rows were gone over once more
  uint64_t table_states = 0;  ///< of the table that rows meet now; 0: they pass, or it is a join
  uint64_t held_bytes = 0;    ///< of operator.memory_bytes, now
  uint64_t peak_bytes = 0;    ///< the most that it was
};
/// An operator that lives. A worker has up to 16 of them; others are in OperatorTotals alone.
struct OperatorMetrics : OperatorCounts {
  QueryId query{};
  uint32_t stage = 0;  ///< its first one
  uint32_t worker = 0;
  OperatorKind kind = OperatorKind::aggregation;
};
/// All operators of a kind that a worker has made, added up; the last three of these that live.
struct OperatorTotals : OperatorCounts {
  uint32_t worker = 0;
  OperatorKind kind = OperatorKind::aggregation;
};

struct SessionMetrics {
  std::vector<WorkerMetrics> workers;  ///< of this node
  std::vector<LinkMetrics> links;
  std::vector<LaneMetrics> lanes;
  /// The shuffles of the query that was asked for, as the workers of this node have opened them.
  std::vector<ShuffleMetrics> shuffles;
  /// Those that live, of every query, by worker of this node.
  std::vector<OperatorMetrics> operators;
  std::vector<OperatorTotals> operator_totals;  ///< by worker of this node, and kind
  uint64_t overflow_memory_bytes = 0;           ///< in use now
  uint64_t overflow_memory_peak_bytes = 0;
  uint64_t overflow_file_bytes = 0;
  uint64_t overflow_file_peak_bytes = 0;
  uint64_t queries_running = 0;
  uint64_t queries_failed = 0;
  uint64_t untaken_frames = 0;   ///< with lane.ends = node: of rows that no worker has taken yet
  uint64_t untaken_streams = 0;  ///< streams that these are of: a shuffle, from one worker
};

}  // namespace faro

#pragma GCC visibility pop
