#include "lab/bench/cluster.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "faro/session.h"
#include "lab/bench/node_life.h"

namespace faro::bench {
namespace {

/// What a process brings back, apart from what the group measures itself. In shared memory.
struct ProcessCell {
  uint64_t connect_start_ns;
  uint64_t connect_end_ns;
};

/// The user's area of the group's mapping:
///
///   | cells[process] | queries[round] | reports[process][report_words] |
class Area {
 public:
  Area(const ProcessGroupOptions& group)
      : processes_(group.process_count),
        rounds_(group.round_count),
        report_words_(
            report_word_limit(group.process_count, group.workers_per_process, group.round_count)) {}

  size_t bytes() const { return report_offset(processes_); }
  void attach(void* memory) { base_ = static_cast<std::byte*>(memory); }

  ProcessCell& cell(uint32_t process) const {
    return reinterpret_cast<ProcessCell*>(base_)[process];
  }
  /// Written by worker 0 of process 0 before the round's barrier, read by all behind it.
  QueryId& query(uint32_t round) const {
    return reinterpret_cast<QueryId*>(base_ + processes_ * sizeof(ProcessCell))[round];
  }
  std::span<uint64_t> report(uint32_t process) const {
    return {reinterpret_cast<uint64_t*>(base_ + report_offset(process)), report_words_};
  }

 private:
  size_t report_offset(uint32_t process) const {
    return processes_ * sizeof(ProcessCell) + rounds_ * sizeof(QueryId) +
           process * report_words_ * sizeof(uint64_t);
  }
  uint32_t processes_;
  uint32_t rounds_;
  uint64_t report_words_;
  std::byte* base_ = nullptr;
};
static_assert(sizeof(ProcessCell) % 8 == 0 && sizeof(QueryId) % 8 == 0);

/// The life of one process.
class Process {
 public:
  Process(const ClusterJob& job, const FaroOptions& faro, const Area& area, GroupMember& member)
      : job_(job), faro_(faro), area_(area), member_(member) {}

  Status run(std::vector<ListeningSocket>& listeners, const std::vector<std::string>& addresses) {
    const uint32_t process = member_.process();
    ListeningSocket mine = std::move(listeners[process]);
    // The others' are theirs alone: a port must not outlive its process.
    listeners.clear();
    FARO_ASSIGN_OR_RETURN(Config config,
                          node_config(faro_.config, process, addresses, job_.workers_per_process));

    member_.meet_processes();
    ProcessCell& cell = area_.cell(process);
    const base::Clock& clock = base::SystemClock::instance();
    cell.connect_start_ns = clock.now_ns();
    FARO_ASSIGN_OR_RETURN(session_, Session::open(config, std::move(mine)));
    cell.connect_end_ns = clock.now_ns();
    member_.meet_processes();

    const uint64_t cpu_before_idle_ns = process_cpu_ns();
    if (faro_.idle_ns > 0) {
      member_.run_workers([this](uint32_t local) {
        Worker& worker = session_->worker(local);
        Status status = idle(worker, faro_.idle_ns);
        worker.release_ownership();
        return status;
      });
    }
    const uint64_t idle_cpu_ns = process_cpu_ns() - cpu_before_idle_ns;
    member_.run_workers([this](uint32_t local) { return run_worker(local); });

    NodeReport report;
    report.connect_ns = cell.connect_end_ns - cell.connect_start_ns;
    report.idle_cpu_ns = idle_cpu_ns;
    report.metrics = session_->metrics();
    const std::vector<uint64_t> words = encode(report);
    const std::span<uint64_t> to = area_.report(process);
    if (words.size() > to.size()) {
      return Status(Code::internal_error, "the benchmark's report is larger than expected");
    }
    std::copy(words.begin(), words.end(), to.begin());
    return session_->close();
  }

 private:
  Status run_worker(uint32_t local) {
    const std::unique_ptr<RoundWorker> work =
        job_.make_worker(*session_, session_->worker(local), member_.progress(local));
    for (uint32_t round = 0; round < member_.options().round_count; ++round) {
      if (member_.global_worker(local) == 0) area_.query(round) = session_->begin_query();
      member_.start_round(local, round);
      FARO_RETURN_IF_ERROR(work->run(area_.query(round)));
      member_.end_round(local, round, work->totals());
    }
    return Status::Ok();
  }

  const ClusterJob& job_;
  const FaroOptions& faro_;
  const Area& area_;
  GroupMember& member_;
  std::unique_ptr<Session> session_;
};

}  // namespace

Result<FaroRun> run_cluster(const ClusterJob& job, const FaroOptions& faro,
                            const RunOptions& options) {
  // Listening before the fork: every port is known to everyone, and no caller is too early.
  std::vector<ListeningSocket> listeners;
  std::vector<std::string> addresses;
  for (uint32_t process = 0; process < job.process_count; ++process) {
    const std::string& host = faro.hosts[process % faro.hosts.size()];
    const bool ipv6 = host.find(':') != std::string::npos;
    FARO_ASSIGN_OR_RETURN(ListeningSocket listener,
                          ListeningSocket::bind(ipv6 ? "[" + host + "]:0" : host + ":0"));
    addresses.push_back(listener.address());
    listeners.push_back(std::move(listener));
  }

  ProcessGroupOptions group_of = group_options(job.process_count, job.workers_per_process, options);
  Area area(group_of);
  group_of.shared_bytes = area.bytes();
  FARO_ASSIGN_OR_RETURN(ProcessGroup group, ProcessGroup::create(group_of));
  area.attach(group.shared_area());

  Result<std::vector<RoundTotals>> rounds = group.run(
      [&](GroupMember& member) {
        return Process(job, faro, area, member).run(listeners, addresses);
      },
      options.progress);
  if (!rounds) return rounds.status();

  FaroRun run;
  run.rounds = timed_figures(job.expected, options, *rounds);
  uint64_t start_ns = UINT64_MAX;
  uint64_t end_ns = 0;
  for (uint32_t process = 0; process < job.process_count; ++process) {
    const std::span<const uint64_t> words = area.report(process);
    FARO_ASSIGN_OR_RETURN(NodeReport report,
                          decode(words.first(std::min<uint64_t>(words[0], words.size()))));
    run.nodes.push_back(std::move(report));
    start_ns = std::min(start_ns, area.cell(process).connect_start_ns);
    end_ns = std::max(end_ns, area.cell(process).connect_end_ns);
  }
  run.connect_seconds = static_cast<double>(end_ns - start_ns) * 1e-9;
  return run;
}

}  // namespace faro::bench
