#include "transport/tcp/tcp_connecting.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "wire/preamble.h"

namespace faro::transport::tcp {

Status TcpConnecting::start() {
  if (!context_.initiator) return {};
  FARO_ASSIGN_OR_RETURN(addresses_, resolve(context_.peer_address));
  dial_next();
  return status_;
}

Status TcpConnecting::on_stream(DataStream stream) {
  if (context_.initiator || fd_ >= 0) {
    close(stream.fd);
    return {Code::protocol_error, "an unexpected data connection"};
  }
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
    fd_ = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
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
  if (error != 0) return dial_failed(dial_error(error));
  if (credentials_ != nullptr) {
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
    status_ = tune();
    if (status_.ok()) watch_for_refusal();
    connected_ = status_.ok();
  } else if (tls_ != nullptr && errno == EAGAIN) {
    wait_for_handshake();
  } else {
    dial_failed(tls_ != nullptr && errno == EPROTO ? tls_error() : dial_error(errno));
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
    status_ = tls_failed
                  ? tls_error()
                  : base::error(Code::connect_failed,
                                "data connection to {}: closed by the peer, whose log may say why",
                                to_string(addresses_[next_address_ - 1]));
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
    status_ = why;
  }
}

Status TcpConnecting::tls_error() const {
  const Status why = tls_->failure();
  return base::error(why.code(), "data connection to {}: {}",
                     to_string(addresses_[next_address_ - 1]), why.message());
}

Status TcpConnecting::tune() {
  const int on = 1;
  // Transfers are gathered before they are sent; waiting for more would only delay them.
  if (setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return base::error(Code::system_error, "TCP_NODELAY: {}", std::strerror(errno));
  }
  return {};
}

void TcpConnecting::close_socket() {
  if (fd_ < 0) return;
  if (registered_) context_.reactor->remove(fd_);
  registered_ = false;
  tls_.reset();
  close(std::exchange(fd_, -1));
}

}  // namespace faro::transport::tcp
