#include "lab/bench/process_group.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "base/unique_fd.h"
#include "lab/bench/now.h"

namespace faro::bench {
namespace {

constexpr size_t kCacheLineBytes = 64;
constexpr int kExitFailed = 3;  // a process that has handed in its error
// After the first bad end, so long for the others to end by themselves: the sockets of a killed
// process close before it can be waited for, and its peers may be quicker to report that.
constexpr uint64_t kCauseGraceNs = 200'000'000;

uint64_t time_ns(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

Status system_error(const char* what) {
  return Status(Code::system_error, std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

namespace internal {

struct alignas(kCacheLineBytes) GroupHeader {
  pthread_barrier_t all_workers;
  pthread_barrier_t all_processes;
  std::atomic<uint32_t> round;  // written by worker 0 of process 0
};

/// Written once by the process itself, read by the parent after `failed` (release/acquire).
struct alignas(kCacheLineBytes) ProcessError {
  std::atomic<uint32_t> claimed;  // which thread may write
  std::atomic<uint32_t> failed;
  Code code;
  uint64_t time_ns;
  char text[1024];
};

struct alignas(kCacheLineBytes) ProgressCell {
  std::atomic<uint64_t> rows;  // one writer; relaxed: only shown to people
};

struct ProcessRound {
  uint64_t cpu_start_ns;
  uint64_t cpu_end_ns;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// The mapping and where its parts lie.
struct GroupMemory {
  ProcessGroupOptions options;
  void* mapping = MAP_FAILED;
  size_t mapping_bytes = 0;
  GroupHeader* header = nullptr;
  ProcessError* errors = nullptr;
  ProgressCell* progress = nullptr;
  WorkerRound* worker_rounds = nullptr;    // [round][worker]
  ProcessRound* process_rounds = nullptr;  // [round][process]
  void* area = nullptr;

  ~GroupMemory() {
    if (mapping != MAP_FAILED) munmap(mapping, mapping_bytes);
  }

  uint32_t worker_count() const noexcept {
    return options.process_count * options.workers_per_process;
  }
  WorkerRound& worker_round(uint32_t round, uint32_t worker) const noexcept {
    return worker_rounds[size_t{round} * worker_count() + worker];
  }
  ProcessRound& process_round(uint32_t round, uint32_t process) const noexcept {
    return process_rounds[size_t{round} * options.process_count + process];
  }
};

}  // namespace internal

using internal::GroupMemory;

namespace {

/// Lays parts out one behind the other, each on its own cache line.
class Layout {
 public:
  size_t place(size_t bytes) noexcept {
    const size_t offset = bytes_;
    bytes_ = (bytes_ + bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
    return offset;
  }
  size_t bytes() const noexcept { return bytes_; }

 private:
  size_t bytes_ = 0;
};

Status make_shared_barrier(pthread_barrier_t* barrier, uint32_t count) {
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  const int error = pthread_barrier_init(barrier, &attributes, count);
  pthread_barrierattr_destroy(&attributes);
  if (error == 0) return Status::Ok();
  errno = error;
  return system_error("pthread_barrier_init");
}

RoundTotals totals_of(const GroupMemory& memory, uint32_t round) {
  RoundTotals totals;
  uint64_t start_ns = UINT64_MAX;
  uint64_t end_ns = 0;
  for (uint32_t worker = 0; worker < memory.worker_count(); ++worker) {
    const WorkerRound& one = memory.worker_round(round, worker);
    start_ns = std::min(start_ns, one.start_ns);
    end_ns = std::max(end_ns, one.end_ns);
    totals.rows += one.rows;
    totals.workers.push_back(one);
  }
  uint64_t cpu_ns = 0;
  for (uint32_t process = 0; process < memory.options.process_count; ++process) {
    const internal::ProcessRound& one = memory.process_round(round, process);
    cpu_ns += one.cpu_end_ns - one.cpu_start_ns;
  }
  totals.seconds = static_cast<double>(end_ns - start_ns) * 1e-9;
  totals.cpu_seconds = static_cast<double>(cpu_ns) * 1e-9;
  return totals;
}

/// The forked processes. Its destructor kills and reaps what still runs.
class Children {
 public:
  explicit Children(const GroupMemory& memory) : memory_(memory) {}
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() { kill_all(); }

  Status add(pid_t pid) {
    Child child;
    child.pid = pid;
    // Not pidfd_open(): glibc 2.36 declares it without C linkage.
    child.fd = base::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    const bool ok = child.fd.valid();
    children_.push_back(std::move(child));
    return ok ? Status::Ok() : system_error("pidfd_open");
  }

  /// Waits until a process ends or the time has passed, and reaps what has ended.
  void wait(uint64_t timeout_ns) {
    std::vector<pollfd> polled;
    for (const Child& child : children_) {
      if (!child.reaped) polled.push_back(pollfd{child.fd.get(), POLLIN, 0});
    }
    // Rounded up, so that a rest of less than a millisecond does not spin.
    const int timeout_ms = static_cast<int>(timeout_ns / 1'000'000 + 1);
    poll(polled.data(), polled.size(), timeout_ms);
    for (Child& child : children_) {
      if (!child.reaped && waitpid(child.pid, &child.status, WNOHANG) == child.pid) {
        child.reaped = true;
      }
    }
  }

  bool all_ended() const noexcept {
    return std::all_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.reaped; });
  }
  bool any_failed() const noexcept {
    return std::any_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.reaped && child.status != 0; });
  }

  void kill_all() noexcept {
    for (Child& child : children_) {
      if (!child.reaped) kill(child.pid, SIGKILL);
    }
    for (Child& child : children_) {
      while (!child.reaped) {
        if (waitpid(child.pid, &child.status, 0) == child.pid || errno != EINTR) {
          child.reaped = true;
        }
      }
    }
  }

  /// Why the group failed: a killed process before any report, then the earliest report. Only after
  /// any_failed(), and before kill_all().
  Status first_cause() const {
    const internal::ProcessError* earliest = nullptr;
    size_t reporter = 0;
    for (size_t process = 0; process < children_.size(); ++process) {
      const Child& child = children_[process];
      if (!child.reaped || child.status == 0) continue;
      const std::string name = "process " + std::to_string(process);
      if (WIFSIGNALED(child.status)) {
        const int signal_number = WTERMSIG(child.status);
        return Status(Code::peer_lost, name + " was ended by signal " +
                                           std::to_string(signal_number) + " (" +
                                           strsignal(signal_number) + ")");
      }
      const internal::ProcessError& error = memory_.errors[process];
      // Pairs with the release in GroupMember::fail.
      if (error.failed.load(std::memory_order_acquire) == 0) {
        return Status(Code::peer_lost, name + " exited early with status " +
                                           std::to_string(WEXITSTATUS(child.status)));
      }
      if (earliest == nullptr || error.time_ns < earliest->time_ns) {
        earliest = &error;
        reporter = process;
      }
    }
    if (earliest == nullptr) return Status(Code::internal_error, "no process has failed");
    return Status(earliest->code, "process " + std::to_string(reporter) + ": " + earliest->text);
  }

  /// "1, 3": who has not ended.
  std::string still_running() const {
    std::string text;
    for (size_t process = 0; process < children_.size(); ++process) {
      if (children_[process].reaped) continue;
      if (!text.empty()) text += ", ";
      text += std::to_string(process);
    }
    return text;
  }

 private:
  struct Child {
    pid_t pid = -1;
    base::UniqueFd fd;
    bool reaped = false;
    int status = 0;
  };

  const GroupMemory& memory_;
  std::vector<Child> children_;
};

void tell_progress(const GroupMemory& memory, uint64_t since_ns, const ProgressSink& sink) {
  if (!sink) return;
  Progress progress;
  progress.round = memory.header->round.load(std::memory_order_relaxed);
  progress.round_count = memory.options.round_count;
  for (uint32_t worker = 0; worker < memory.worker_count(); ++worker) {
    progress.rows_done += memory.progress[worker].rows.load(std::memory_order_relaxed);
  }
  progress.seconds = static_cast<double>(now_ns() - since_ns) * 1e-9;
  sink(progress);
}

/// The life of a forked process.
[[noreturn]] void run_child(GroupMember& member, pid_t parent,
                            const std::function<Status(GroupMember&)>& body) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitFailed);  // the parent died before the line above
  Status status;
  try {
    status = body(member);
  } catch (const std::exception& error) {
    status = Status(Code::internal_error, error.what());
  }
  if (!status.ok()) member.fail(status);
  // Not exit(): what the parent had buffered or registered is the parent's.
  _exit(0);
}

}  // namespace

uint64_t process_cpu_ns() noexcept { return time_ns(CLOCK_PROCESS_CPUTIME_ID); }
uint64_t thread_cpu_ns() noexcept { return time_ns(CLOCK_THREAD_CPUTIME_ID); }

// --- GroupMember ---------------------------------------------------------------------------------

const ProcessGroupOptions& GroupMember::options() const noexcept { return memory_.options; }

void* GroupMember::shared_area() const noexcept { return memory_.area; }

void GroupMember::run_workers(const std::function<Status(uint32_t worker)>& work) {
  auto run_one = [&](uint32_t worker) noexcept {
    const Status status = work(worker);
    if (!status.ok()) fail(status);
  };
  std::vector<std::thread> threads;
  for (uint32_t worker = 1; worker < options().workers_per_process; ++worker) {
    threads.emplace_back(run_one, worker);
  }
  run_one(0);
  for (std::thread& thread : threads) thread.join();
}

void GroupMember::meet_processes() noexcept {
  pthread_barrier_wait(&memory_.header->all_processes);
}

void GroupMember::start_round(uint32_t worker, uint32_t round) noexcept {
  progress(worker).store(0, std::memory_order_relaxed);
  // Two barriers: between them nobody works, and the CPU time is read.
  pthread_barrier_wait(&memory_.header->all_workers);
  if (worker == 0) {
    memory_.process_round(round, process_).cpu_start_ns = process_cpu_ns();
    if (process_ == 0) memory_.header->round.store(round, std::memory_order_relaxed);
  }
  pthread_barrier_wait(&memory_.header->all_workers);
  WorkerRound& mine = memory_.worker_round(round, global_worker(worker));
  mine.start_ns = now_ns();
  mine.cpu_ns = thread_cpu_ns();
}

void GroupMember::end_round(uint32_t worker, uint32_t round,
                            const workload::Totals& rows) noexcept {
  WorkerRound& mine = memory_.worker_round(round, global_worker(worker));
  mine.end_ns = now_ns();
  mine.cpu_ns = thread_cpu_ns() - mine.cpu_ns;
  mine.rows = rows;
  pthread_barrier_wait(&memory_.header->all_workers);
  // After the barrier, so that work for workers that end later is counted too.
  if (worker == 0) memory_.process_round(round, process_).cpu_end_ns = process_cpu_ns();
}

std::atomic<uint64_t>& GroupMember::progress(uint32_t worker) noexcept {
  return memory_.progress[global_worker(worker)].rows;
}

void GroupMember::fail(const Status& status) noexcept {
  internal::ProcessError& error = memory_.errors[process_];
  if (error.claimed.exchange(1, std::memory_order_relaxed) != 0) {
    for (;;) pause();  // another thread is already ending the process
  }
  error.code = status.code();
  error.time_ns = now_ns();
  const std::string_view message = status.message();
  const size_t bytes = std::min(message.size(), sizeof(error.text) - 1);
  std::memcpy(error.text, message.data(), bytes);
  error.text[bytes] = '\0';
  // Pairs with the acquire in Children::first_cause.
  error.failed.store(1, std::memory_order_release);
  _exit(kExitFailed);
}

// --- ProcessGroup --------------------------------------------------------------------------------

ProcessGroup::ProcessGroup(std::unique_ptr<GroupMemory> memory) noexcept
    : memory_(std::move(memory)) {}
ProcessGroup::ProcessGroup(ProcessGroup&&) noexcept = default;
ProcessGroup& ProcessGroup::operator=(ProcessGroup&&) noexcept = default;
ProcessGroup::~ProcessGroup() = default;

Result<ProcessGroup> ProcessGroup::create(const ProcessGroupOptions& options) {
  if (options.process_count == 0 || options.workers_per_process == 0 || options.round_count == 0) {
    return Status(Code::invalid_argument,
                  "processes, workers per process and rounds must be at least 1");
  }
  auto memory = std::make_unique<GroupMemory>();
  memory->options = options;
  const size_t workers = memory->worker_count();
  const size_t rounds = options.round_count;
  Layout layout;
  const size_t header_at = layout.place(sizeof(internal::GroupHeader));
  const size_t errors_at = layout.place(options.process_count * sizeof(internal::ProcessError));
  const size_t progress_at = layout.place(workers * sizeof(internal::ProgressCell));
  const size_t worker_rounds_at = layout.place(rounds * workers * sizeof(WorkerRound));
  const size_t process_rounds_at =
      layout.place(rounds * options.process_count * sizeof(internal::ProcessRound));
  const size_t area_at = layout.place(options.shared_bytes);

  memory->mapping_bytes = layout.bytes();
  memory->mapping = mmap(nullptr, memory->mapping_bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory->mapping == MAP_FAILED) return system_error("mmap of the group's shared memory");
  // Fresh mappings are zero, which is the initial value of everything in them.
  char* base = static_cast<char*>(memory->mapping);
  memory->header = new (base + header_at) internal::GroupHeader;
  memory->errors = reinterpret_cast<internal::ProcessError*>(base + errors_at);
  memory->progress = reinterpret_cast<internal::ProgressCell*>(base + progress_at);
  memory->worker_rounds = reinterpret_cast<WorkerRound*>(base + worker_rounds_at);
  memory->process_rounds = reinterpret_cast<internal::ProcessRound*>(base + process_rounds_at);
  memory->area = base + area_at;
  FARO_RETURN_IF_ERROR(
      make_shared_barrier(&memory->header->all_workers, static_cast<uint32_t>(workers)));
  FARO_RETURN_IF_ERROR(make_shared_barrier(&memory->header->all_processes, options.process_count));
  return ProcessGroup(std::move(memory));
}

void* ProcessGroup::shared_area() const noexcept { return memory_->area; }

Result<std::vector<RoundTotals>> ProcessGroup::run(const std::function<Status(GroupMember&)>& body,
                                                   const ProgressSink& progress) {
  const ProcessGroupOptions& options = memory_->options;
  const uint64_t start_ns = now_ns();
  const uint64_t deadline_ns = base::deadline_after(start_ns, options.time_limit_ns);
  const pid_t parent = getpid();
  Children children(*memory_);
  for (uint32_t process = 0; process < options.process_count; ++process) {
    const pid_t pid = fork();
    if (pid < 0) return system_error("fork");
    if (pid == 0) {
      GroupMember member(*memory_, process);
      run_child(member, parent, body);
    }
    FARO_RETURN_IF_ERROR(children.add(pid));
  }

  uint64_t next_progress_ns = start_ns + options.progress_interval_ns;
  while (!children.all_ended()) {
    const uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return Status(Code::deadline_exceeded,
                    "the time limit of " + std::to_string(options.time_limit_ns / 1'000'000) +
                        " ms passed while process " + children.still_running() +
                        " still ran, in round " +
                        std::to_string(memory_->header->round.load(std::memory_order_relaxed)));
    }
    if (now >= next_progress_ns) {
      tell_progress(*memory_, start_ns, progress);
      next_progress_ns = now + options.progress_interval_ns;
    }
    children.wait(std::min(next_progress_ns, deadline_ns) - now);
    if (children.any_failed()) {
      const uint64_t grace_end_ns = now_ns() + kCauseGraceNs;
      for (uint64_t at = now_ns(); at < grace_end_ns && !children.all_ended(); at = now_ns()) {
        children.wait(grace_end_ns - at);
      }
      return children.first_cause();
    }
  }

  std::vector<RoundTotals> rounds;
  for (uint32_t round = 0; round < options.round_count; ++round) {
    rounds.push_back(totals_of(*memory_, round));
  }
  return rounds;
}

}  // namespace faro::bench
