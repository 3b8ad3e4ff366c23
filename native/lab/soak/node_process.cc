#include "lab/soak/node_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "lab/soak/node.h"

namespace faro::soak {
namespace {

constexpr int kOwnSocket = 3;  // behind the standard streams
constexpr base::Nanoseconds kJoinedNs = 1'000'000'000;

[[noreturn]] void live(uint32_t node, const Options& options, const std::string& folder,
                       base::UniqueFd socket, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  // Nothing of what the controller has open belongs here.
  const int own = socket.get() == kOwnSocket ? socket.release() : dup2(socket.get(), kOwnSocket);
  (void)syscall(SYS_close_range, kOwnSocket + 1, ~0u, 0);
  run_node(node, options, folder, LineSocket(base::UniqueFd(own)));
}

}  // namespace

Result<NodeProcess> NodeProcess::start(uint32_t node, const Options& options,
                                       const std::string& folder) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return Status(Code::system_error, fmt::format("socketpair: {}", std::strerror(errno)));
  base::UniqueFd here(pair[0]);
  base::UniqueFd there(pair[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Status(Code::system_error, fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) live(node, options, folder, std::move(there), parent);
  return NodeProcess(pid, LineSocket(std::move(here)));
}

NodeProcess::NodeProcess(NodeProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), lines_(std::move(other.lines_)), first_(other.first_) {}

NodeProcess::~NodeProcess() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void NodeProcess::signal(int number) const { kill(pid_, number); }

std::string NodeProcess::grown_since_first_look() {
  // The kernel may still show a thread that has just been joined.
  const base::Clock& clock = base::SystemClock::instance();
  const base::Nanoseconds deadline = clock.now_ns() + kJoinedNs;
  for (;;) {
    const Usage now = usage();
    if (!first_) first_ = now;
    if (now.descriptors <= first_->descriptors && now.threads <= first_->threads) return "";
    if (clock.now_ns() > deadline) {
      return fmt::format("{} descriptors and {} threads, {} and {} at first", now.descriptors,
                         now.threads, first_->descriptors, first_->threads);
    }
    std::this_thread::yield();
  }
}

}  // namespace faro::soak
