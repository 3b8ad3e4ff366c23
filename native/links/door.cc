#include "links/door.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "links/attempt_limiter.h"
#include "transport/tcp/socket_address.h"

namespace faro::links {
namespace {

// Accepted in one round, so that a flood of connections leaves time for the peers.
constexpr int kAcceptsPerTurn = 64;
// Without descriptors the listening socket stays ready: look again after this time, do not spin.
constexpr base::Nanoseconds kPause = 100'000'000;
// The first byte of whoever begins with TLS; a preamble has another.
constexpr std::byte kHandshakeRecord{22};

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
  base::Nanoseconds next = base::kForever;
  for (const Waiting& each : waiting_) {
    next = std::min(next, each.deadline);
    if (each.queues) next = std::min(next, host_->may_try_at(each.peer_address));
  }
  if (paused_until_ != 0) next = std::min(next, paused_until_);
  return next;
}

void Door::check_deadlines(base::Nanoseconds now) {
  if (paused_until_ != 0 && now >= paused_until_) {
    paused_until_ = 0;
    reactor_.change(listener_.fd(), EPOLLIN);
  }
  for (Place next = waiting_.begin(); next != waiting_.end();) {
    const Place place = next++;
    if (now < place->deadline) {
      if (place->queues && now >= host_->may_try_at(place->peer_address)) take_turn(place);
      continue;
    }
    const bool has_tls = place->socket.tls() != nullptr;
    expire(place, fmt::format("it sent {} of {} bytes of a preamble within {} s", place->have,
                              sizeof(wire::Preamble),
                              (has_tls ? kTlsPreambleTime : kPreambleTime) / 1'000'000'000));
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
    std::string peer_address = transport::tcp::to_string(peer);
    std::string host = transport::tcp::host_of(peer_address);
    if (waiting_.size() >= kWaitingLimit) make_room_for(host);
    const int fd = socket.get();
    const Place place = waiting_.emplace(waiting_.end());
    place->socket = tls::Socket(std::move(socket));
    place->peer_address = std::move(peer_address);
    place->host = std::move(host);
    place->deadline = reactor_.clock().now_ns() + kPreambleTime;
    const Status added = reactor_.add(fd, EPOLLIN, [this, place](uint32_t) { read_some(place); });
    if (!added.ok()) {
      drop(place, std::string(added.message()));
      continue;
    }
    read_some(place);  // most often it is there already
  }
}

// A flood pushes out its own: one of the address that has most, silent ones first, the oldest of
// these. Who has begun TLS has failed only if its own address pushes it out; otherwise the failures
// of a node could be brought about by others.
void Door::make_room_for(const std::string& newcomer_host) {
  std::unordered_map<std::string_view, size_t> waiting = {{newcomer_host, 1}};
  for (const Waiting& each : waiting_) ++waiting[each.host];
  const auto rank = [&](const Waiting& each) {
    return std::pair(waiting[each.host], each.socket.tls() == nullptr);
  };
  const Place place =
      std::max_element(waiting_.begin(), waiting_.end(), [&](const Waiting& a, const Waiting& b) {
        return rank(a) < rank(b);  // of equals the first is found
      });
  const std::string cause = "too many connections have not sent a preamble";
  if (place->host == newcomer_host) return expire(place, cause);
  drop(place, cause);
}

// Looks at the first byte. False: there is none yet, or the connection is gone.
bool Door::begin_tls(Place place) {
  std::byte first{};
  const ssize_t seen = recv(place->socket.get(), &first, 1, MSG_PEEK);
  if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (seen != 1 || first != kHandshakeRecord) return true;
  if (credentials_ == nullptr) {
    refuse(place, Status(Code::configuration_mismatch,
                         "it begins with TLS, and security.tls is off here"));
    return false;
  }
  if (reactor_.clock().now_ns() < host_->may_try_at(place->peer_address))
    return queue_for_tls(place);
  return start_tls(place);
}

bool Door::start_tls(Place place) {
  base::UniqueFd fd = place->socket.take_fd();
  auto stream = credentials_->accept(fd.get());
  place->socket = tls::Socket(std::move(fd), std::move(stream));
  place->deadline = reactor_.clock().now_ns() + kTlsPreambleTime;
  if (place->socket.tls() != nullptr) return true;
  drop(place, "no memory for TLS");
  return false;
}

// Always false: it does not go on now.
bool Door::queue_for_tls(Place place) {
  const size_t queuing =
      static_cast<size_t>(std::count_if(waiting_.begin(), waiting_.end(), [&](const Waiting& each) {
        return each.queues && each.host == place->host;
      }));
  if (queuing >= AttemptLimiter::kWaitingPerAddress) {
    drop(place, "too many attempts from its address have failed");
    return false;
  }
  place->queues = true;
  place->deadline = reactor_.clock().now_ns() + kPreambleTime;
  reactor_.remove(place->socket.get());
  waiting_.splice(waiting_.end(), waiting_, place);  // behind those who came to it before
  return false;
}

void Door::take_turn(Place place) {
  place->queues = false;
  host_->on_turn(place->peer_address);
  const Status added =
      reactor_.add(place->socket.get(), EPOLLIN, [this, place](uint32_t) { read_some(place); });
  if (!added.ok()) return drop(place, std::string(added.message()));
  start_tls(place);
}

void Door::read_some(Place place) {
  if (place->have == 0 && place->socket.tls() == nullptr && !begin_tls(place)) return;
  const ssize_t got = place->socket.receive(std::span(place->bytes).subspan(place->have));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0 && errno == EPROTO) return refuse(place, place->socket.tls()->failure());
  if (got <= 0) return expire(place, "it closed before its preamble was complete");
  place->have += static_cast<size_t>(got);
  if (place->have < place->bytes.size()) return;

  const wire::Preamble preamble = wire::load_preamble(place->bytes);
  if (const char* why = wire::why_invalid(preamble)) return drop(place, why);
  reactor_.remove(place->socket.get());
  tls::Socket socket = std::move(place->socket);
  const std::string peer_address = std::move(place->peer_address);
  waiting_.erase(place);
  if (preamble.kind == wire::ConnectionKind::control) {
    host_->on_control(std::move(socket), peer_address);
  } else {
    host_->on_data(preamble.token, std::move(socket), peer_address);
  }
}

// Who has begun TLS and does not go on, or leaves, has made an attempt that failed.
void Door::expire(Place place, const std::string& cause) {
  if (place->socket.tls() == nullptr) return drop(place, cause);
  refuse(place, Status(Code::authentication_failed, cause));
}

void Door::drop(Place place, const std::string& cause) {
  warn(place->peer_address, cause);
  reactor_.remove(place->socket.get());
  waiting_.erase(place);
}

void Door::refuse(Place place, const Status& cause) {
  const std::string peer_address = place->peer_address;
  reactor_.remove(place->socket.get());
  base::UniqueFd socket = place->socket.take_fd();
  waiting_.erase(place);
  host_->on_refused(std::move(socket), peer_address, cause);
}

void Door::warn(const std::string& peer_address, const std::string& cause) {
  uint64_t suppressed = 0;
  if (!limiter_.allows(cause, reactor_.clock().now_ns(), suppressed)) return;
  base::log(LogLevel::warning, "{}: dropped a connection from {}: {}{}", listener_.address(),
            peer_address, cause,
            suppressed == 0 ? "" : fmt::format(" ({} more like this before)", suppressed));
}

}  // namespace faro::links
