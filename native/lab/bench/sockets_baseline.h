// The contestant Faro is measured against: the "sockets middleware" of §2.1 of "RDMA middleware for
// asynchronous multi-stage shuffling", in C++ and as fast as its architecture permits.
//
// What makes it that architecture, and stays:
//   - one non-blocking TCP socket for each pair of workers of different processes; both shuffles
//     share it, so that every row carries a header that names its stage;
//   - workers do all I/O themselves: they serialise rows into outgoing buffers, write these to the
//     sockets, and copy what sockets hold into incoming buffers of 64 KiB;
//   - rows of the same process go through queues in shared memory, the worker's own are handled
//     directly;
//   - the polling order of the paper: rows from the own process, then sockets, then rows from the
//     child (here: the generator); a worker blocks only when it has no rows of its own left to
//     generate and nothing came, or when no outgoing buffer takes its next row.
//
// What is done to make it good: frames have a fixed header of 4 bytes checked by one comparison;
// sockets are watched by one edge-triggered epoll set, so that none is read in vain; rows are
// generated, parsed and routed in batches, sorted by stage as far as they come, without a branch on
// the destination; a worker yields before it sleeps; memory is allocated before the clock starts.
//
//   frame on a socket and in a local block        (little-endian)
//   0               3              4              4+row_bytes
//   +---------------+--------------+------ … ------+
//   |    length     | stage | kind |     row       |   length: row_bytes; stage 1, 2, in the low half
//   +---------------+--------------+------ … ------+   of its byte; kind 0 row, 1 end. An end frame has
//                                                      a row of zeros, so that all are equally long
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faro/status.h"
#include "lab/bench/figures.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

enum class SocketsForm : uint8_t {
  /// Every row is written to its socket at once: a system call, and often a packet, per row. About
  /// 200 times as expensive as the other (1 µs/hop): run it with fewer rows.
  paper,
  /// Rows gather in outgoing buffers of 16 KiB.
  tuned,
};

/// What can be varied. The defaults are the fastest found on a machine with 2 processors, within
/// the form that was given: outgoing buffers of 64 KiB would cost 15 to 20 % less, but Faro's
/// threshold, and the paper's, is 16 KiB. Tried without a lasting gain: MSG_MORE (up to 20 % less
/// with one congestion control, more with others), other congestion controls, staggered buffers.
struct SocketsOptions {
  static constexpr uint32_t kAutomatic = UINT32_MAX;

  SocketsForm form = SocketsForm::tuned;
  /// Numeric addresses of this host, not empty: the processes take turns, and each of their workers
  /// listens there on a port of its own, and calls from there.
  std::vector<std::string> addresses = {"127.0.0.1"};
  uint32_t outgoing_buffer_bytes = 16 * 1024;
  uint32_t incoming_buffer_bytes = 64 * 1024;
  /// SO_SNDBUF of each socket; 0 leaves the kernel's own choice. On one processor 128 KiB cost 10 %
  /// less than that, as rows under way stay in its cache; across processors up to 20 % more (8×1),
  /// as senders sleep more often. So the default is 128 KiB if all workers share one processor,
  /// else 0.
  uint32_t kernel_buffer_bytes = kAutomatic;
  /// Rows generated between two looks at the sockets.
  uint32_t generate_batch_rows = 2048;
  /// sched_yield calls without progress before a worker sleeps.
  uint32_t yields_before_sleep = 4;
};

/// Forks the processes of the job on this host, runs the job in them options.warmup_rounds +
/// options.timed_rounds times over the same connections, and returns the timed rounds.
///
/// Threads: as ProcessGroup::run, the caller must have no other threads.
/// Blocks: until the processes have ended or the time limit has passed.
/// Errors: invalid_argument, address_in_use, connect_failed, peer_lost (a process died),
/// protocol_error, deadline_exceeded, system_error. A wrong result is no error: see
/// RunFigures::verified.
Result<std::vector<RunFigures>> run_sockets_baseline(const TwoStageJob& job,
                                                     const SocketsOptions& sockets,
                                                     const RunOptions& options);

}  // namespace faro::bench
