#include "lab/soak/line_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace faro::soak {

void LineSocket::say(const std::string& line) {
  const std::string text = line + "\n";
  (void)send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

std::optional<std::string> LineSocket::hear(base::Nanoseconds deadline) {
  for (;;) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    int timeout_ms = -1;
    if (deadline != base::kForever) {
      const base::Nanoseconds now = base::SystemClock::instance().now_ns();
      if (now >= deadline) return std::nullopt;
      timeout_ms = static_cast<int>(std::min<uint64_t>((deadline - now) / 1'000'000 + 1, 60'000));
    }
    pollfd readable{fd_.get(), POLLIN, 0};
    if (poll(&readable, 1, timeout_ms) <= 0) continue;
    std::array<char, 1024> bytes;
    const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    unread_.append(bytes.data(), static_cast<size_t>(got));
  }
}

}  // namespace faro::soak
