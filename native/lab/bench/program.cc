#include "lab/bench/program.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.h"

namespace faro::bench {
namespace {

constexpr int kNotStarted = 127;  // as shells say it

/// An unnamed file for what the program prints: unlike a pipe it needs no reader meanwhile.
class Capture {
 public:
  int fd() const { return fd_.get(); }
  std::string text() const {
    std::string text;
    char part[4096];
    for (ssize_t read;
         (read = pread(fd(), part, sizeof part, static_cast<off_t>(text.size()))) > 0;)
      text.append(part, static_cast<size_t>(read));
    return text;
  }

 private:
  const base::UniqueFd fd_{memfd_create("output", MFD_CLOEXEC)};
};

[[noreturn]] void become(const ProgramRun& run, int out, int err) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (const auto& [name, value] : run.environment) setenv(name.c_str(), value.c_str(), 1);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& argument : run.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(kNotStarted);
}

/// False if it has not ended within the limit.
bool wait_for_end(pid_t child, uint64_t limit_ns) {
  const base::UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd watched{pidfd.get(), POLLIN, 0};
  return poll(&watched, 1, static_cast<int>(limit_ns / 1'000'000)) > 0;
}

}  // namespace

Result<ProgramOutput> run_program(const ProgramRun& run) {
  const std::string& name = run.command.front();
  const Capture out;
  const Capture err;
  const pid_t child = fork();
  if (child < 0) {
    return Status(Code::system_error, fmt::format("{}: fork: {}", name, std::strerror(errno)));
  }
  if (child == 0) become(run, out.fd(), err.fd());

  const bool ended = wait_for_end(child, run.time_limit_ns);
  if (!ended) kill(-child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!ended) {
    return Status(Code::deadline_exceeded,
                  fmt::format("{} did not end within {} s: {}", name,
                              run.time_limit_ns / 1'000'000'000, err.text()));
  }
  if (!WIFEXITED(status)) {
    return Status(Code::system_error, fmt::format("{} was killed by signal {}: {}", name,
                                                  WTERMSIG(status), err.text()));
  }
  if (WEXITSTATUS(status) == kNotStarted) {
    return Status(Code::system_error, fmt::format("{} cannot be started: {}", name, err.text()));
  }
  return ProgramOutput{WEXITSTATUS(status), out.text(), err.text()};
}

}  // namespace faro::bench
