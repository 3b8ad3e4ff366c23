#include "session/door.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "transport/tcp/socket_address.h"

namespace faro::session {
namespace {

// Accepted in one round, so that a flood of connections leaves time for the peers.
constexpr int kAcceptsPerTurn = 64;
// Without descriptors the listening socket stays ready: look again after this time, do not spin.
constexpr base::Nanoseconds kPause = 100'000'000;

}  // namespace

Status Door::open(Host* host) {
  host_ = host;
  return reactor_.add(listener_.fd(), EPOLLIN, [this](uint32_t) { accept_some(); });
}

void Door::shut() noexcept {
  if (listener_.fd() >= 0) reactor_.remove(listener_.fd());
  [[maybe_unused]] const base::UniqueFd closed = std::move(listener_).take();
  for (Waiting& each : waiting_) reactor_.remove(each.socket.get());
  waiting_.clear();
  paused_until_ = 0;
}

base::Nanoseconds Door::next_deadline() const {
  base::Nanoseconds next = waiting_.empty() ? base::kForever : waiting_.front().deadline;
  if (paused_until_ != 0) next = std::min(next, paused_until_);
  return next;
}

void Door::check_deadlines(base::Nanoseconds now) {
  if (paused_until_ != 0 && now >= paused_until_) {
    paused_until_ = 0;
    reactor_.change(listener_.fd(), EPOLLIN);
  }
  while (!waiting_.empty() && now >= waiting_.front().deadline) {
    drop(waiting_.begin(),
         fmt::format("it sent {} of {} bytes of a preamble within {} s", waiting_.front().have,
                     sizeof(wire::Preamble), kPreambleTime / 1'000'000'000));
  }
}

void Door::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    transport::tcp::SocketAddress peer;
    peer.length = sizeof peer.storage;
    base::UniqueFd socket(accept4(listener_.fd(), reinterpret_cast<sockaddr*>(&peer.storage),
                                  &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        warn("anyone", fmt::format("cannot accept connections: {}", std::strerror(errno)));
        paused_until_ = reactor_.clock().now_ns() + kPause;
        reactor_.change(listener_.fd(), 0);
      }
      return;  // EAGAIN, or a connection that has gone again
    }
    if (waiting_.size() >= kWaitingLimit) {
      drop(waiting_.begin(), "too many connections have not sent a preamble");
    }
    const int fd = socket.get();
    const Place place = waiting_.emplace(waiting_.end());
    place->socket = std::move(socket);
    place->peer_address = transport::tcp::to_string(peer);
    place->deadline = reactor_.clock().now_ns() + kPreambleTime;
    const Status added = reactor_.add(fd, EPOLLIN, [this, place](uint32_t) { read_some(place); });
    if (!added.ok()) {
      drop(place, std::string(added.message()));
      continue;
    }
    read_some(place);  // most often it is there already
  }
}

void Door::read_some(Place place) {
  const ssize_t got = recv(place->socket.get(), place->bytes.data() + place->have,
                           place->bytes.size() - place->have, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(place, "it closed before its preamble was complete");
  place->have += static_cast<size_t>(got);
  if (place->have < place->bytes.size()) return;

  const wire::Preamble preamble = wire::load_preamble(place->bytes);
  if (const char* why = wire::why_invalid(preamble)) return drop(place, why);
  reactor_.remove(place->socket.get());
  base::UniqueFd socket = std::move(place->socket);
  const std::string peer_address = std::move(place->peer_address);
  waiting_.erase(place);
  if (preamble.kind == wire::ConnectionKind::control) {
    host_->on_control(std::move(socket), peer_address);
  } else {
    host_->on_data(preamble.token, std::move(socket));
  }
}

void Door::drop(Place place, const std::string& cause) {
  warn(place->peer_address, cause);
  reactor_.remove(place->socket.get());
  waiting_.erase(place);
}

void Door::warn(const std::string& peer_address, const std::string& cause) {
  uint64_t suppressed = 0;
  if (!limiter_.allows(cause, reactor_.clock().now_ns(), suppressed)) return;
  base::log(LogLevel::warning, "{}: dropped a connection from {}: {}{}", listener_.address(),
            peer_address, cause,
            suppressed == 0 ? "" : fmt::format(" ({} more like this before)", suppressed));
}

}  // namespace faro::session
