// Connections: those of this process over TCP, which can be broken, as a network does it that forgets them.
#pragma once

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "peer.h"

namespace compatibility {

/// Threads: one; others may open and close connections meanwhile.
class Connections {
 public:
  /// Breaks all that there are.
  void cut() {
    cut_ = standing(true);
    if (cut_.empty()) fail("there is no connection to be cut");
  }
  /// As many new ones as were cut, within ten seconds; at once if none was since the last call.
  void await_mended() {
    if (cut_.empty()) return;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
      size_t fresh = 0;
      for (const ino_t each : standing(false)) fresh += cut_.count(each) == 0 ? 1 : 0;
      if (fresh >= cut_.size()) return cut_.clear();
      if (std::chrono::steady_clock::now() > deadline)
        fail("of " + std::to_string(cut_.size()) + " connections that were cut " +
             std::to_string(fresh) + " are there again");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  /// Those that there are now are meant by some_stand.
  void note() { noted_ = standing(false); }
  bool some_stand() const {
    for (const ino_t each : standing(false)) {
      if (noted_.count(each) != 0) return true;
    }
    return false;
  }

 private:
  static std::set<ino_t> standing(bool shut) {
    std::set<ino_t> found;
    DIR* const folder = opendir("/proc/self/fd");
    if (folder == nullptr) fail("cannot read /proc/self/fd");
    while (const dirent* const each = readdir(folder)) {
      const int fd = std::atoi(each->d_name);
      sockaddr_storage peer{};
      socklen_t bytes = sizeof peer;
      struct stat about {};
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) continue;
      if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) continue;
      if (fstat(fd, &about) != 0 || (shut && shutdown(fd, SHUT_RDWR) != 0)) continue;
      found.insert(about.st_ino);
    }
    closedir(folder);
    return found;
  }

  std::set<ino_t> cut_, noted_;
};

}  // namespace compatibility
