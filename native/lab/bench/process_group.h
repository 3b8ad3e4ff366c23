// Runs the processes of a one-host benchmark: forks them, starts each round at a common barrier,
// measures it, and brings results, progress and errors back to the parent.
//
// All that the processes share is one anonymous mapping made before the fork:
//
//   +--------+-----------+----------+----------------+-----------------+-------------+
//   | header | processes | progress | rounds×workers | rounds×processes| user's area |
//   +--------+-----------+----------+----------------+-----------------+-------------+
//     barriers  errors     rows so far  start, end,      CPU time         shared_bytes
//                                       CPU time,
//                                       count, checksum
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "faro/status.h"
#include "lab/workload/integer_rows.h"

namespace faro::bench {

/// User and system time of all threads of this process, in nanoseconds.
uint64_t process_cpu_ns() noexcept;
/// The calling thread's.
uint64_t thread_cpu_ns() noexcept;

/// What the parent can say while the processes run.
struct Progress {
  uint32_t round = 0;        ///< 0 … round_count-1
  uint32_t round_count = 0;  ///< warm-up rounds included
  uint64_t rows_done = 0;    ///< rows that the sinks have consumed in this round
  double seconds = 0;        ///< since the processes were started
};

/// Called now and then in the parent's thread while the processes run; may be empty.
using ProgressSink = std::function<void(const Progress&)>;

struct ProcessGroupOptions {
  uint32_t process_count = 1;
  uint32_t workers_per_process = 1;
  /// How often the same set of processes does the job, warm-up included.
  uint32_t round_count = 1;
  /// From the fork to the exit of the last process.
  uint64_t time_limit_ns = 120'000'000'000;
  /// Between two calls of the progress sink.
  uint64_t progress_interval_ns = 200'000'000;
  /// Bytes of zeroed memory shared by parent and processes for the carrier's own use.
  size_t shared_bytes = 0;
};

/// What one worker brought back from one round. Times are CLOCK_MONOTONIC.
struct WorkerRound {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t cpu_ns = 0;  ///< user and system time of its thread
  workload::Totals rows;
};

/// One round of all processes.
struct RoundTotals {
  double seconds = 0;      ///< from the common start to the end of the last worker
  double cpu_seconds = 0;  ///< user and system time of all threads of all processes
  workload::Totals rows;   ///< sum over the workers
  std::vector<WorkerRound> workers;
};

namespace internal {
struct GroupMemory;
}

/// The group as one of its processes sees it.
///
/// Threads: each function names its callers.
class GroupMember {
 public:
  /// 0 … process_count-1. Any thread.
  uint32_t process() const noexcept { return process_; }
  const ProcessGroupOptions& options() const noexcept;
  /// The number of this process's worker `worker` over all processes. Any thread.
  uint32_t global_worker(uint32_t worker) const noexcept {
    return process_ * options().workers_per_process + worker;
  }
  /// The carrier's own shared memory, aligned to 64 bytes; zeroed before the fork unless the parent
  /// wrote to it. Any thread.
  void* shared_area() const noexcept;

  /// Runs `work(worker)` for each worker of this process, each on a thread of its own (worker 0 on
  /// the calling one), and joins them. A worker that returns an error fails the whole process at
  /// once (see fail), as its siblings may be waiting for it.
  ///
  /// Blocks: until all have returned.
  void run_workers(const std::function<Status(uint32_t worker)>& work);

  /// Waits until every process has come here, e.g. between two steps of a setup. One thread of each
  /// process.
  void meet_processes() noexcept;

  /// Waits until every worker of every process has come here, then starts the clock. Each worker,
  /// with the rounds 0 … round_count-1 in order.
  void start_round(uint32_t worker, uint32_t round) noexcept;

  /// Stops the worker's clock, hands in its totals and waits until every worker has done so: then
  /// no row is under way any more. Each worker, once per start_round.
  void end_round(uint32_t worker, uint32_t round, const workload::Totals& rows) noexcept;

  /// All rounds of a worker: `work` has run_round(), and then totals().
  template <class Work>
  Status run_rounds(uint32_t worker, Work& work) {
    for (uint32_t round = 0; round < options().round_count; ++round) {
      start_round(worker, round);
      FARO_RETURN_IF_ERROR(work.run_round());
      end_round(worker, round, work.totals());
    }
    return Status::Ok();
  }

  /// How many rows of the current round the worker's sink has consumed: store it (relaxed) now and
  /// then, per batch, never per row. The worker itself; the parent reads.
  std::atomic<uint64_t>& progress(uint32_t worker) noexcept;

  /// Hands the error to the parent and ends this process without running destructors or exit
  /// handlers. Any thread; the first error of a process counts.
  [[noreturn]] void fail(const Status& status) noexcept;

 private:
  friend class ProcessGroup;
  GroupMember(internal::GroupMemory& memory, uint32_t process) noexcept
      : memory_(memory), process_(process) {}

  internal::GroupMemory& memory_;
  const uint32_t process_;
};

/// The parent's side.
///
///   auto group = ProcessGroup::create(options);
///   auto rounds = group.value().run(
///       [&](GroupMember& member) {
///         … connect …
///         member.run_workers([&](uint32_t worker) {
///           for (uint32_t round = 0; round < member.options().round_count; ++round) {
///             member.start_round(worker, round);
///             … shuffle …
///             member.end_round(worker, round, totals);
///           }
///           return Status::Ok();
///         });
///         return Status::Ok();
///       },
///       progress);
///
/// Threads: one thread, and the parent must have no other threads when it calls run, as a fork
/// copies only the caller.
/// Owns: the shared mapping. Movable.
class ProcessGroup {
 public:
  /// Errors: invalid_argument (a count of zero), system_error (no memory).
  static Result<ProcessGroup> create(const ProcessGroupOptions& options);

  ProcessGroup(ProcessGroup&&) noexcept;
  ProcessGroup& operator=(ProcessGroup&&) noexcept;
  ~ProcessGroup();

  /// The memory that GroupMember::shared_area answers: fill it before run, read it after.
  void* shared_area() const noexcept;

  /// Forks the processes, runs `body` in each, and returns the rounds in order. A process ends when
  /// its body returns. Whatever happens, no process outlives the call; if the parent is killed, the
  /// kernel kills them.
  ///
  /// Blocks: until all processes have ended or the time limit has passed. Call it once.
  /// Errors: peer_lost (a process was killed or exited early; its number and signal), the error of
  /// a process with its number in front, deadline_exceeded, system_error (fork). A process that was
  /// killed counts as the cause of what others reported about it.
  Result<std::vector<RoundTotals>> run(const std::function<Status(GroupMember&)>& body,
                                       const ProgressSink& progress = {});

 private:
  explicit ProcessGroup(std::unique_ptr<internal::GroupMemory> memory) noexcept;

  std::unique_ptr<internal::GroupMemory> memory_;
};

}  // namespace faro::bench
