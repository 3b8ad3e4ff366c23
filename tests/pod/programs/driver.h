// How a program of tests/pod is told what to do: lines over a socket, as by the coordinator of an engine. The harness (../pod.py)
// is at the other end. Neither stdin nor a file is taken for it, since a pod may have neither.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "faro/status.h"

namespace pod {

/// Threads: any may say; one hears.
class Driver {
 public:
  /// `port`: of the harness, on this host.
  explicit Driver(const char* port) {
    // Not one of 0 to 2, which may be closed here: these are Faro's to leave alone.
    const int first = socket(AF_INET, SOCK_STREAM, 0);
    fd_ = fcntl(first, F_DUPFD_CLOEXEC, 10);
    close(first);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(70);
  }

  void say(std::string line) {
    line += '\n';
    const std::lock_guard lock(mutex_);
    for (size_t sent = 0; sent < line.size();) {
      const ssize_t put = send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) _exit(70);
      sent += static_cast<size_t>(put);
    }
  }

  /// The words of the next line; none: the harness has ended.
  std::vector<std::string> hear() {
    std::string line;
    for (char one = 0; recv(fd_, &one, 1, 0) == 1 && one != '\n';) line += one;
    std::istringstream words(line);
    std::vector<std::string> found;
    for (std::string word; words >> word;) found.push_back(word);
    return found;
  }

 private:
  int fd_ = -1;
  std::mutex mutex_;
};

/// What a call of Faro answered, where that is the end of what was being done.
struct Failure {
  faro::Status status;
};

inline void check(const faro::Status& status) {
  if (!status.ok()) throw Failure{status};
}
template <typename T>
T check(faro::Result<T> result) {
  check(result.status());
  return std::move(result).value();
}

/// A program whose failure is told to the harness.
template <typename Program>
int run(const char* port, Program program) {
  Driver driver(port);
  try {
    program(driver);
    driver.say("closed");
    return 0;
  } catch (const Failure& failure) {
    driver.say("failed " + failure.status.to_string());
    return 1;
  }
}

/// SIGTERM is told to the harness, which then has the program close, as an engine has a node leave. To be made first, while there
/// is one thread: the others inherit that the signal is blocked.
class Termination {
 public:
  explicit Termination(Driver& driver) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([&driver, signals] {
      int signal = 0;
      while (sigwait(&signals, &signal) == 0) driver.say("terminate");
    }).detach();
  }
};

/// What is sent, and what arrives, is known to whoever knows this.
inline uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace pod
