#include "transport/tcp/tcp_connecting.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "wire/preamble.h"

namespace faro::transport::tcp {
namespace {

// A peer that has no place for a connection has one a few handshakes later. One that closes each of these does not want them.
constexpr int kDropsLimit = 8;
constexpr long kFirstPauseNs = 10'000'000;
constexpr long kLongestPauseNs = 250'000'000;

// The peer, or something on the way, has closed a connection that it had let come about.
bool is_drop(int error) { return error == ECONNRESET || error == ECONNABORTED || error == EPIPE; }

}  // namespace

Status TcpConnecting::start() {
  if (!context_.initiator) return {};
  FARO_ASSIGN_OR_RETURN(addresses_, resolve(context_.peer_address));
  take_turn();
  return status_;
}

// Without TLS there is nothing to take turns for.
void TcpConnecting::take_turn() {
  if (credentials_ == nullptr) return dial_all();
  const auto dial = [weak = std::weak_ptr<TcpConnecting*>(self_)] {
    if (const auto self = weak.lock()) (*self)->dial_all();
  };
  turn_ = credentials_->turns().take(context_.peer_address, tls::Turns::Order::first,
                                     [reactor = context_.reactor, dial] { reactor->defer(dial); });
  if (turn_.has_come()) dial_all();
}

void TcpConnecting::dial_all() {
  next_address_ = 0;
  dial_next();
}

// Returns false if there is no later: the peer has dropped too many.
bool TcpConnecting::dial_later() {
  if (drops_ >= kDropsLimit) return false;
  const long pause = std::min(kFirstPauseNs << drops_++, kLongestPauseNs);
  pause_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const itimerspec after{{}, {0, pause}};
  if (!pause_.valid() || timerfd_settime(pause_.get(), 0, &after, nullptr) != 0) return false;
  const Status added = context_.reactor->add(pause_.get(), EPOLLIN, [this](uint32_t) {
    context_.reactor->remove(pause_.get());
    pause_.reset();
    take_turn();
  });
  if (!added.ok()) pause_.reset();
  return added.ok();
}

Status TcpConnecting::on_stream(DataStream stream) {
  if (context_.initiator) {
    close(stream.fd);
    return {Code::protocol_error, "an unexpected data connection"};
  }
  close_socket();  // the peer has found an earlier one broken, and has dialled again
  fd_ = stream.fd;
  tls_ = std::move(stream.tls);
  connected_ = true;
  return tune();
}

DataStream TcpConnecting::take() {
  if (registered_) context_.reactor->remove(fd_);
  registered_ = false;
  return {std::exchange(fd_, -1), std::move(tls_)};
}

// Dials the next address of the peer that does not fail at once; status_ is set when there is
// none.
void TcpConnecting::dial_next() {
  Status last = base::error(Code::connect_failed, "no address of {}", context_.peer_address);
  while (next_address_ < addresses_.size()) {
    const SocketAddress& address = addresses_[next_address_++];
    fd_ = base::above_standard(
        socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd_ >= 0 && source_) leave_from(fd_, *source_, address);
    if (fd_ >= 0 && (connect(fd_, address.get(), address.length) == 0 || errno == EINPROGRESS)) {
      last = context_.reactor->add(fd_, EPOLLOUT, [this](uint32_t) { on_dialled(); });
      if (last.ok()) {
        registered_ = true;
        return;
      }
    } else {
      last = dial_error(errno);
    }
    close_socket();
  }
  turn_.end();
  status_ = last;
}

Status TcpConnecting::dial_error(int error) const {
  const std::string text = to_string(addresses_[next_address_ - 1]);
  return base::error(Code::connect_failed, "data connection to {}: {}", text, std::strerror(error));
}

void TcpConnecting::on_dialled() {
  context_.reactor->remove(fd_);
  registered_ = false;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (is_drop(error)) return was_dropped(dial_error(error));
  if (error != 0) return dial_failed(dial_error(error));
  if (credentials_ != nullptr) {
    turn_.connected();
    tls_ = credentials_->dial(fd_, context_.peer_host);
    if (tls_ == nullptr) return dial_failed(dial_error(ENOMEM));
  }
  introduce();
}

// Says which link this is; with TLS after the handshake, which may take some rounds.
void TcpConnecting::introduce() {
  wire::Preamble preamble = wire::data_preamble(context_.stream_token);
  const iovec piece{&preamble, sizeof preamble};
  // A new connection's buffer takes so little at once.
  const ssize_t sent = tls_ != nullptr ? tls_->send({&piece, 1})
                                       : send(fd_, &preamble, sizeof preamble, MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(sizeof preamble)) {
    turn_.end();
    status_ = tune();
    if (status_.ok()) watch_for_refusal();
    connected_ = status_.ok();
  } else if (tls_ != nullptr && errno == EAGAIN) {
    wait_for_handshake();
  } else if (tls_ != nullptr && errno == EPROTO) {
    const Status why = tls_error();
    why.code() == Code::connect_failed ? was_dropped(why) : dial_failed(why);
  } else {
    is_drop(errno) ? was_dropped(dial_error(errno)) : dial_failed(dial_error(errno));
  }
}

void TcpConnecting::wait_for_handshake() {
  const uint32_t events = tls_->send_waits_for_input() ? EPOLLIN : EPOLLOUT;
  const Status added = context_.reactor->add(fd_, events, [this](uint32_t) {
    context_.reactor->remove(fd_);
    registered_ = false;
    introduce();
  });
  if (!added.ok()) return dial_failed(added);
  registered_ = true;
}

// Until take() nothing is read, for rows may follow; but a peer that does not take the preamble, or after it this
// node's certificate, closes.
void TcpConnecting::watch_for_refusal() {
  status_ = context_.reactor->add(fd_, EPOLLRDHUP, [this](uint32_t) {
    connected_ = false;
    std::byte unread{};
    const iovec piece{&unread, sizeof unread};
    const bool tls_failed = tls_ != nullptr && tls_->receive({&piece, 1}) < 0 && errno == EPROTO;
    const Status why =
        tls_failed ? tls_error()
                   : base::error(Code::connect_failed,
                                 "data connection to {}: closed by the peer, whose log may say why",
                                 to_string(addresses_[next_address_ - 1]));
    // With TLS the peer has not read the preamble before its part of the handshake is over.
    if (tls_ != nullptr && why.code() == Code::connect_failed) return was_dropped(why);
    status_ = why;
    close_socket();
  });
  registered_ = status_.ok();
}

// It was this address; perhaps there is another.
void TcpConnecting::dial_failed(const Status& why) {
  close_socket();
  if (next_address_ < addresses_.size()) {
    dial_next();
  } else {
    turn_.end();
    status_ = why;
  }
}

void TcpConnecting::was_dropped(const Status& why) {
  close_socket();
  turn_.end();
  if (!dial_later()) status_ = why;
}

Status TcpConnecting::tls_error() const {
  const Status why = tls_->failure();
  // A connection that breaks before the link is up was not made.
  const Code code = why.code() == Code::peer_lost ? Code::connect_failed : why.code();
  return base::error(code, "data connection to {}: {}", to_string(addresses_[next_address_ - 1]),
                     why.message());
}

Status TcpConnecting::tune() {
  const int on = 1;
  // Transfers are gathered before they are sent; waiting for more would only delay them.
  if (setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return base::error(Code::system_error, "TCP_NODELAY: {}", std::strerror(errno));
  }
  return {};
}

void TcpConnecting::give_up() {
  if (pause_.valid()) context_.reactor->remove(pause_.get());
  close_socket();
}

void TcpConnecting::close_socket() {
  if (fd_ < 0) return;
  if (registered_) context_.reactor->remove(fd_);
  registered_ = false;
  tls_.reset();
  close(std::exchange(fd_, -1));
}

}  // namespace faro::transport::tcp
