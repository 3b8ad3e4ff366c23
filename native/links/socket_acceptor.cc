#include "links/socket_acceptor.h"

#include <fmt/format.h>
#include <poll.h>
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

// Most connections accepted in one round, so that a flood of them leaves time for the peers.
constexpr int kAcceptsPerTurn = 64;
// When the process has no descriptors left the listening socket stays ready. To avoid spinning, accept again after
// this time.
constexpr base::Nanoseconds kPause = 100'000'000;
// The first byte of a TLS handshake; a preamble begins with another one.
constexpr std::byte kHandshakeRecord{22};
constexpr const char* kTooMany = "too many connections have not sent a preamble";

// Its first bytes may still be there to be read.
bool has_left(int fd) {
  pollfd asked{fd, POLLRDHUP, 0};
  return poll(&asked, 1, 0) == 1;
}

}  // namespace

Status SocketAcceptor::open(Host* host) {
  host_ = host;
  return reactor_.add(listener_.fd(), EPOLLIN, [this](uint32_t) { accept_some(); });
}

void SocketAcceptor::shut() noexcept {
  if (listener_.fd() >= 0) reactor_.remove(listener_.fd());
  [[maybe_unused]] const base::UniqueFd closed = std::move(listener_).take();
  for (Waiting& each : pending_) reactor_.remove(each.socket.get());
  pending_.clear();
  paused_until_ = 0;
}

base::Nanoseconds SocketAcceptor::next_deadline() const {
  base::Nanoseconds next = base::kForever;
  for (const Waiting& each : pending_) {
    next = std::min(next, each.deadline);
    if (each.queues) next = std::min(next, host_->may_try_at(each.peer_address));
  }
  const Waiting* last = nullptr;  // often all are of one address
  for (const Waiting& each : pending_) {
    if (!each.waits_for_place || (last != nullptr && last->host == each.host)) continue;
    last = &each;
    const Waiting* const oldest = places_of(each.host).oldest;
    if (oldest != nullptr) next = std::min(next, oldest->began + kPlaceTime);
  }
  if (paused_until_ != 0) next = std::min(next, paused_until_);
  return next;
}

void SocketAcceptor::check_deadlines(base::Nanoseconds now) {
  if (paused_until_ != 0 && now >= paused_until_) {
    paused_until_ = 0;
    reactor_.change(listener_.fd(), EPOLLIN);
  }
  for (PendingSocket next = pending_.begin(); next != pending_.end();) {
    const PendingSocket pending = next++;
    if (now < pending->deadline) {
      if (pending->queues && now >= host_->may_try_at(pending->peer_address)) take_turn(pending);
      continue;
    }
    const bool has_tls = pending->socket.tls() != nullptr;
    expire(pending, fmt::format("it sent {} of {} bytes of a preamble within {} s", pending->have,
                                sizeof(wire::Preamble),
                                (has_tls ? kTlsPreambleTime : kPreambleTime) / 1'000'000'000));
  }
  give_places(now);
}

void SocketAcceptor::accept_some() {
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
      return;  // EAGAIN, or the connection is gone already
    }
    std::string peer_address = transport::tcp::to_string(peer);
    std::string host = transport::tcp::host_of(peer_address);
    if (pending_.size() >= kWaitingLimit && !make_room_for(host)) {
      warn(peer_address, kTooMany);
      continue;
    }
    const int fd = socket.get();
    const PendingSocket pending = pending_.emplace(pending_.end());
    pending->socket = tls::Socket(std::move(socket));
    pending->peer_address = std::move(peer_address);
    pending->host = std::move(host);
    pending->deadline = reactor_.clock().now_ns() + kPreambleTime;
    const Status added =
        reactor_.add(fd, EPOLLIN, [this, pending](uint32_t) { read_some(pending); });
    if (!added.ok()) {
      drop(pending, std::string(added.message()));
      continue;
    }
    read_some(pending);  // usually the first byte is there already
  }
}

// Drops one connection of the address that has most: those first whose TLS has not begun, and of these the oldest. One that
// has begun TLS gives way to others, which does not count as a failed attempt: outsiders could cause the failures of a node.
// Its own address pushes it out, as a failed attempt, only if it stands still or that address has failed too often; otherwise
// an honest burst would. Returns false if there is no room: the newcomer has to come again.
bool SocketAcceptor::make_room_for(const std::string& newcomer_host) {
  if (pending_.size() < kWaitingLimit + host_->expected_streams()) return true;
  std::unordered_map<std::string_view, size_t> waiting = {{newcomer_host, 1}};
  for (const Waiting& each : pending_) ++waiting[each.host];
  const auto rank = [&](const Waiting& each) {
    return std::pair(waiting[each.host], each.socket.tls() == nullptr);
  };
  const PendingSocket pending =
      std::max_element(pending_.begin(), pending_.end(), [&](const Waiting& a, const Waiting& b) {
        return rank(a) < rank(b);  // of equals the first is found
      });
  if (pending->host != newcomer_host || pending->socket.tls() == nullptr) {
    drop(pending, kTooMany);
    return true;
  }
  const base::Nanoseconds now = reactor_.clock().now_ns();
  if (now < pending->began + kPlaceTime && now >= host_->may_try_at(pending->peer_address))
    return false;
  expire(pending, kTooMany);
  return true;
}

// Looks at the first byte. Returns false if there is none yet, or if the connection is gone.
bool SocketAcceptor::begin_tls(PendingSocket pending) {
  std::byte first{};
  const ssize_t seen = recv(pending->socket.get(), &first, 1, MSG_PEEK);
  if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (seen != 1 || first != kHandshakeRecord) return true;
  if (credentials_ == nullptr) {
    refuse(pending, Status(Code::configuration_mismatch,
                           "it begins with TLS, but security.tls is off here"));
    return false;
  }
  if (reactor_.clock().now_ns() < host_->may_try_at(pending->peer_address))
    return queue_for_tls(pending);
  const Places of_host = places_of(pending->host);
  if (of_host.taken + of_host.wanted >= places_for(*pending)) return wait_for_place(pending);
  return start_tls(pending);
}

bool SocketAcceptor::start_tls(PendingSocket pending) {
  pending->began = reactor_.clock().now_ns();
  base::UniqueFd fd = pending->socket.take_fd();
  auto stream = credentials_->accept(fd.get());
  pending->socket = tls::Socket(std::move(fd), std::move(stream));
  pending->deadline = pending->began + kTlsPreambleTime;
  if (pending->socket.tls() != nullptr) return true;
  drop(pending, "no memory for TLS");
  return false;
}

// Always returns false: the connection has to wait.
bool SocketAcceptor::queue_for_tls(PendingSocket pending) {
  const size_t queuing =
      static_cast<size_t>(std::count_if(pending_.begin(), pending_.end(), [&](const Waiting& each) {
        return each.queues && each.host == pending->host;
      }));
  if (queuing >= AttemptLimiter::kWaitingPerAddress) {
    drop(pending, "too many attempts from its address have failed");
    return false;
  }
  pending->queues = true;
  pending->deadline = reactor_.clock().now_ns() + kPreambleTime;
  reactor_.remove(pending->socket.get());
  pending_.splice(pending_.end(), pending_, pending);  // behind those that came earlier
  return false;
}

void SocketAcceptor::take_turn(PendingSocket pending) {
  pending->queues = false;
  host_->on_turn(pending->peer_address);
  begin_late(pending);
}

SocketAcceptor::Places SocketAcceptor::places_of(const std::string& host) const {
  Places places;
  for (const Waiting& each : pending_) {
    if (each.host != host) continue;
    places.wanted += each.waits_for_place;
    if (each.socket.tls() == nullptr) continue;
    ++places.taken;
    if (places.oldest == nullptr || each.began < places.oldest->began) places.oldest = &each;
  }
  return places;
}

size_t SocketAcceptor::places_for(const Waiting& waiting) {
  return std::clamp<size_t>(host_->may_try_together(waiting.peer_address), 1,
                            kHandshakesPerAddress);
}

// Always returns false: others of its address are in the handshake.
bool SocketAcceptor::wait_for_place(PendingSocket pending) {
  pending->waits_for_place = true;
  pending->deadline = reactor_.clock().now_ns() + kTlsPreambleTime;
  reactor_.remove(pending->socket.get());
  pending_.splice(pending_.end(), pending_, pending);  // behind those that came earlier
  return false;
}

void SocketAcceptor::give_places(base::Nanoseconds now) {
  std::string full;  // the last address without a place; often all are of one
  for (PendingSocket next = pending_.begin(); next != pending_.end();) {
    const PendingSocket pending = next++;
    if (!pending->waits_for_place || pending->host == full) continue;
    const Places of_host = places_of(pending->host);
    if (of_host.taken < places_for(*pending)) {
      give_place(pending, now);
    } else if (now < of_host.oldest->began + kPlaceTime) {
      full = pending->host;
    } else {
      expire(std::find_if(pending_.begin(), pending_.end(),
                          [&](const Waiting& each) { return &each == of_host.oldest; }),
             fmt::format("its handshake has stood still for {} s while others of its address wait",
                         kPlaceTime / 1'000'000'000));
      next = pending_.begin();  // which may have been the one that has gone
    }
  }
}

void SocketAcceptor::give_place(PendingSocket pending, base::Nanoseconds now) {
  pending->waits_for_place = false;
  if (now < host_->may_try_at(pending->peer_address)) {  // others have failed meanwhile
    queue_for_tls(pending);
  } else if (has_left(pending->socket.get())) {
    drop(pending, "it has left before its turn");
  } else {
    begin_late(pending);
  }
}

void SocketAcceptor::begin_late(PendingSocket pending) {
  const Status added = reactor_.add(pending->socket.get(), EPOLLIN,
                                    [this, pending](uint32_t) { read_some(pending); });
  if (!added.ok()) return drop(pending, std::string(added.message()));
  start_tls(pending);
}

void SocketAcceptor::read_some(PendingSocket pending) {
  if (pending->have == 0 && pending->socket.tls() == nullptr && !begin_tls(pending)) return;
  const ssize_t got = pending->socket.receive(std::span(pending->bytes).subspan(pending->have));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0 && errno == EPROTO) return refuse(pending, pending->socket.tls()->failure());
  if (got <= 0) return expire(pending, "it closed before its preamble was complete");
  pending->have += static_cast<size_t>(got);
  judge(pending);
}

// One of another protocol may wait for an answer: it is known by its first bytes.
void SocketAcceptor::judge(PendingSocket pending) {
  const auto said = std::span(pending->bytes).first(pending->have);
  const bool is_probe = wire::may_begin_probe(said);
  const bool is_other = !is_probe && !wire::may_begin_preamble(said);
  if (!is_other && pending->have < pending->bytes.size()) return;
  if (is_probe) return answer_other(pending);
  const wire::Preamble preamble = wire::load_preamble(pending->bytes);
  const char* const why = wire::why_invalid(preamble);
  if (why != nullptr && !is_other) return drop(pending, why);
  if (is_other) {
    warn(pending->peer_address, why);
    return answer_other(pending);
  }
  const std::string peer_address = pending->peer_address;
  tls::Socket socket = take(pending);
  if (preamble.kind == wire::ConnectionKind::control) {
    host_->on_control(std::move(socket), peer_address);
  } else {
    host_->on_data(preamble.token, std::move(socket), peer_address);
  }
}

void SocketAcceptor::answer_other(PendingSocket pending) {
  const std::string peer_address = pending->peer_address;
  host_->on_other(take(pending), peer_address);
}

// Nobody waits for its first bytes any more.
tls::Socket SocketAcceptor::take(PendingSocket pending) {
  reactor_.remove(pending->socket.get());
  tls::Socket socket = std::move(pending->socket);
  pending_.erase(pending);
  return socket;
}

// A peer that has begun TLS and then stops or leaves counts as a failed attempt.
void SocketAcceptor::expire(PendingSocket pending, const std::string& cause) {
  if (pending->socket.tls() == nullptr) return drop(pending, cause);
  refuse(pending, Status(Code::authentication_failed, cause));
}

void SocketAcceptor::drop(PendingSocket pending, const std::string& cause) {
  warn(pending->peer_address, cause);
  reactor_.remove(pending->socket.get());
  pending_.erase(pending);
}

void SocketAcceptor::refuse(PendingSocket pending, const Status& cause) {
  const std::string peer_address = pending->peer_address;
  reactor_.remove(pending->socket.get());
  base::UniqueFd socket = pending->socket.take_fd();
  pending_.erase(pending);
  host_->on_refused(std::move(socket), peer_address, cause);
}

void SocketAcceptor::warn(const std::string& peer_address, const std::string& cause) {
  uint64_t suppressed = 0;
  if (!limiter_.allows(cause, reactor_.clock().now_ns(), suppressed)) return;
  base::log(LogLevel::warning, "{}: dropped a connection from {}: {}{}", listener_.address(),
            peer_address, cause,
            suppressed == 0 ? "" : fmt::format(" ({} more like this before)", suppressed));
}

}  // namespace faro::links
