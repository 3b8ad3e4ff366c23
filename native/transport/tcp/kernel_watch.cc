#include "transport/tcp/kernel_watch.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

namespace faro::transport::tcp {
namespace {

constexpr int kProbes = 4;
constexpr int kLongestProbeSeconds = 32767;  // the kernel's

void set(int fd, int level, int name, int value) noexcept {
  setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

void KernelWatch::begin(int fd, base::Nanoseconds limit) noexcept {
  limit_ms_ = static_cast<int>(std::min<base::Nanoseconds>(limit / base::kMillisecond, INT32_MAX));
  if (limit_ms_ == 0) return;
  const int probe_seconds = std::max(limit_ms_ / 1000 / kProbes, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::min(probe_seconds, kLongestProbeSeconds));
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::min(probe_seconds, kLongestProbeSeconds));
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_limit(fd, limit_ms_);
}

void KernelWatch::look(int fd) noexcept {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
  // Nothing is on its way, and yet there is something to send: the peer has no room.
  const bool is_closed = info.tcpi_unacked == 0 && info.tcpi_notsent_bytes != 0;
  const int wanted = is_closed ? 0 : limit_ms_;
  if (wanted != set_ms_) set_limit(fd, wanted);
}

void KernelWatch::set_limit(int fd, int ms) noexcept {
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
  set_ms_ = ms;
}

}  // namespace faro::transport::tcp
