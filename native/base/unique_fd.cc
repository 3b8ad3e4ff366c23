#include "base/unique_fd.h"

#include <fcntl.h>

#include <cerrno>

namespace faro::base {
namespace {

constexpr int kFirst = STDERR_FILENO + 1;

}  // namespace

int above_standard(int fd) noexcept {
  if (fd < 0 || fd >= kFirst) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirst);
  const int error = errno;
  close(fd);
  if (moved < 0) errno = error;
  return moved;
}

StandardHeld::StandardHeld() noexcept {
  for (int& fd : held_) {
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < kFirst) continue;
    close(fd);
    fd = -1;
    break;
  }
}

StandardHeld::~StandardHeld() {
  for (const int fd : held_) {
    if (fd >= 0) close(fd);
  }
}

}  // namespace faro::base
