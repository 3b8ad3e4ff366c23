#include "base/standard_error.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <exception>
#include <string>

#include "base/unique_fd.h"

namespace faro::base {
namespace {

std::atomic<uint64_t> dropped{0};
std::atomic<bool> is_cut{false};  // the last line has no end

// A way to it whose flags are this process's alone, so that a write never waits. None: there is no such way.
UniqueFd reopened() {
  return UniqueFd(open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// Writes to stderr as write() does, but never waits: EAGAIN if it would have to.
class StandardError {
 public:
  StandardError() {
    struct stat state {};
    if (fstat(STDERR_FILENO, &state) != 0) return;
    kind_ = S_ISREG(state.st_mode)    ? Kind::file
            : S_ISSOCK(state.st_mode) ? Kind::socket
                                      : Kind::other;
    if (kind_ == Kind::other) own_ = reopened();
  }

  ssize_t write_some(std::string_view text) const {
    switch (kind_) {
      case Kind::none:
        errno = EBADF;
        return -1;
      case Kind::file:  // at the offset that others share
        return write(STDERR_FILENO, text.data(), text.size());
      case Kind::socket:
        return send(STDERR_FILENO, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      case Kind::other:
        break;
    }
    if (own_.valid()) return write(own_.get(), text.data(), text.size());
    // It may have been filled by others since, but there is no better way.
    pollfd asked{STDERR_FILENO, POLLOUT, 0};
    if (poll(&asked, 1, 0) == 1 && (asked.revents & POLLOUT) != 0)
      return write(STDERR_FILENO, text.data(), text.size());
    errno = EAGAIN;
    return -1;
  }

 private:
  enum class Kind { none, file, socket, other };

  Kind kind_ = Kind::none;
  UniqueFd own_;
};

// Returns how many bytes were written. A pipe takes a piece of this size whole or not at all.
size_t write_all(const StandardError& to, std::string_view text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t put = to.write_some(text.substr(written, PIPE_BUF));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    written += static_cast<size_t>(put);
  }
  return written;
}

}  // namespace

void write_to_standard_error(std::string_view line) noexcept {
  const uint64_t missing = dropped.exchange(0, std::memory_order_relaxed);
  try {
    const bool continues = is_cut.exchange(false, std::memory_order_relaxed);
    std::string text = continues ? " ... \n" : "";
    if (missing != 0)
      text +=
          fmt::format("faro: {} lines were dropped here: standard error took no more\n", missing);
    text += line;
    text += '\n';
    const size_t written = write_all(StandardError(), text);
    if (written == text.size()) return;
    dropped.fetch_add(missing + 1, std::memory_order_relaxed);
    if (written != 0 || continues) is_cut.store(true, std::memory_order_relaxed);
  } catch (const std::exception&) {  // no memory
    dropped.fetch_add(missing + 1, std::memory_order_relaxed);
  }
}

}  // namespace faro::base
