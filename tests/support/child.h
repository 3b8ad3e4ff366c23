// Child: a forked process of a test, killed with it.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace faro::test {

/// Runs a function in a child process and talks with it by lines over two pipes. Fork before starting threads.
/// Threads: one. Owns: the process; it is killed and waited for by the destructor.
class Child {
 public:
  /// What the child uses to talk to the test.
  class Side {
   public:
    Side(int in, int out) : in_(in), out_(out) {}
    void say(const std::string& line) const {
      const std::string text = line + "\n";
      [[maybe_unused]] const ssize_t put = write(out_, text.data(), text.size());
    }
    /// Waits for the test to say something, or to be gone.
    std::string hear() const { return read_line(in_).value_or(""); }

   private:
    int in_;
    int out_;
  };

  /// `body` returns the exit code.
  explicit Child(const std::function<int(const Side&)>& body) {
    int to_child[2];
    int from_child[2];
    if (pipe(to_child) != 0 || pipe(from_child) != 0) std::abort();
    pid_ = fork();
    if (pid_ < 0) std::abort();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the test
      close(to_child[1]);
      close(from_child[0]);
      _exit(body(Side(to_child[0], from_child[1])));
    }
    close(to_child[0]);
    close(from_child[1]);
    in_.reset(from_child[0]);
    out_.reset(to_child[1]);
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait_for_end();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  /// SIGSTOP. Blocks: until all its threads stand, or it has ended; the signal alone takes effect when one of its
  /// threads gets a processor.
  void stop() const {
    signal(SIGSTOP);
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
  }
  /// The next line of the child; none when it has ended.
  std::optional<std::string> hear() { return read_line(in_.get()); }
  void say(const std::string& line) {
    const std::string text = line + "\n";
    [[maybe_unused]] const ssize_t put = write(out_.get(), text.data(), text.size());
  }
  /// Whether it has returned, or was killed. Blocks: never.
  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }
  /// The exit code, or minus the signal that killed it. Blocks: until it ends.
  int wait_for_end() {
    int status = 0;
    if (pid_ > 0) waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static std::optional<std::string> read_line(int fd) {
    std::string line;
    char c = 0;
    while (read(fd, &c, 1) == 1) {
      if (c == '\n') return line;
      line += c;
    }
    return line.empty() ? std::nullopt : std::optional(line);
  }

  pid_t pid_ = -1;
  base::UniqueFd in_;
  base::UniqueFd out_;
};

}  // namespace faro::test
