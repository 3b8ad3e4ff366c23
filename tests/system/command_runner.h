// Runs the programs faro and faro-lab as a user would, with a time limit.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

extern char** environ;

namespace faro::test {

/// What a finished command leaves.
struct CommandResult {
  int exit_code = -1;  ///< -1: did not start, was killed, or took too long
  std::string output;
  std::string errors;
};

/// A running program. Threads: one. Owns: the process, which it kills in the destructor.
class RunningCommand {
 public:
  /// `variables`: "NAME=value" on top of this process's environment, without its FARO_… ones.
  explicit RunningCommand(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& variables = {},
                          const char* program = FARO_COMMAND_PATH) {
    int out[2];
    int err[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return;
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment = variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (std::string(*entry).rfind("FARO_", 0) != 0) environment.emplace_back(*entry);
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    if (posix_spawn(&pid_, program, &actions, nullptr, pointers(words).data(),
                    pointers(environment).data()) != 0) {
      pid_ = -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    output_ = out[0];
    errors_ = err[0];
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;
  ~RunningCommand() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(output_);
    close(errors_);
  }

  /// -1 if it did not start.
  pid_t pid() const { return pid_; }

  /// Reads everything and waits for the end; kills the command after the time limit.
  CommandResult finish(std::chrono::seconds limit = std::chrono::seconds(50)) {
    CommandResult result;
    if (pid_ <= 0) return result;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    bool open[2] = {true, true};
    while (open[0] || open[1]) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return result;
      pollfd polled[2] = {{open[0] ? output_ : -1, POLLIN, 0}, {open[1] ? errors_ : -1, POLLIN, 0}};
      if (poll(polled, 2, static_cast<int>(left.count())) <= 0) continue;
      for (int i : {0, 1}) {
        if (polled[i].revents == 0) continue;
        char bytes[4096];
        const ssize_t got = read(polled[i].fd, bytes, sizeof bytes);
        if (got > 0) {
          (i == 0 ? result.output : result.errors).append(bytes, static_cast<size_t>(got));
        } else if (got == 0 || errno != EINTR) {
          open[i] = false;
        }
      }
    }
    int status = 0;
    if (waitpid(pid_, &status, 0) == pid_ && WIFEXITED(status)) {
      result.exit_code = WEXITSTATUS(status);
    }
    pid_ = -1;
    return result;
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> made;
    for (std::string& word : words) made.push_back(word.data());
    made.push_back(nullptr);
    return made;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  int errors_ = -1;
};

inline CommandResult run_faro(const std::vector<std::string>& arguments,
                              const std::vector<std::string>& variables = {}) {
  return RunningCommand(arguments, variables).finish();
}

inline CommandResult run_faro_lab(const std::vector<std::string>& arguments) {
  return RunningCommand(arguments, {}, FARO_LAB_PATH).finish();
}

/// Where the program is that a line begins with: `faro` or `faro-lab`.
inline const char* program_of(const std::vector<std::string>& line) {
  return line.at(0) == "faro" ? FARO_COMMAND_PATH : FARO_LAB_PATH;
}

/// Runs a line as it is typed, with the program in front.
inline CommandResult run_line(const std::vector<std::string>& line) {
  return RunningCommand({line.begin() + 1, line.end()}, {}, program_of(line)).finish();
}

}  // namespace faro::test
