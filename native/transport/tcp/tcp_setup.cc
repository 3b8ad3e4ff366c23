// Setting a link up: the initiator dials the peer's listener and says in the preamble which link it
// means; the other side gets the connection from its session. No setup messages.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "transport/tcp/socket_address.h"
#include "transport/tcp/tcp_link.h"
#include "transport/tcp/tcp_transport.h"
#include "wire/preamble.h"

namespace faro::transport::tcp {
namespace {

class TcpSetup final : public LinkSetup {
 public:
  TcpSetup(LinkContext& context, std::shared_ptr<TcpReceiver> receiver,
           std::shared_ptr<DeferredSends> deferred, const std::optional<SocketAddress>& source,
           std::shared_ptr<tls::Credentials> credentials)
      : context_(context),
        receiver_(std::move(receiver)),
        deferred_(std::move(deferred)),
        source_(source),
        credentials_(std::move(credentials)) {}
  ~TcpSetup() override { close_socket(); }

  Status start() override {
    FARO_RETURN_IF_ERROR(allocate(context_.outgoing, outgoing_));
    FARO_RETURN_IF_ERROR(allocate(context_.incoming, incoming_));
    if (!context_.initiator) return {};
    FARO_ASSIGN_OR_RETURN(addresses_, resolve(context_.peer_address));
    dial_next();
    return status_;
  }

  Status on_message(std::span<const std::byte> message) override {
    return base::error(Code::protocol_error, "setup message of {} bytes; tcp has none",
                       message.size());
  }

  Status on_stream(DataStream stream) override {
    if (context_.initiator || fd_ >= 0) {
      close(stream.fd);
      return {Code::protocol_error, "an unexpected data connection"};
    }
    fd_ = stream.fd;
    tls_ = std::move(stream.tls);
    connected_ = true;
    return tune();
  }

  Status status() const override { return status_; }
  bool ready() const override { return connected_ && status_.ok(); }

  std::unique_ptr<DataLink> take() override {
    if (registered_) context_.reactor->remove(fd_);
    registered_ = false;
    auto link =
        std::make_unique<TcpLink>(context_, receiver_, deferred_, std::exchange(fd_, -1),
                                  std::move(tls_), std::move(outgoing_), std::move(incoming_));
    status_ = link->start();
    if (!status_.ok()) return nullptr;
    return link;
  }

 private:
  static Status allocate(const ring::Layout& layout, RingRegion& region) {
    region = RingRegion(layout);
    if (region.ok()) return {};
    return base::error(Code::resource_limit, "{} bytes for the rings of a link: {}",
                       layout.region_bytes(), std::strerror(errno));
  }

  // Dials the next address of the peer that does not fail at once; status_ is set when there is
  // none.
  void dial_next() {
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

  Status dial_error(int error) const {
    const std::string text = to_string(addresses_[next_address_ - 1]);
    return base::error(Code::connect_failed, "data connection to {}: {}", text,
                       std::strerror(error));
  }

  void on_dialled() {
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
  void introduce() {
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

  void wait_for_handshake() {
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
  void watch_for_refusal() {
    status_ = context_.reactor->add(fd_, EPOLLRDHUP, [this](uint32_t) {
      connected_ = false;
      std::byte unread{};
      const iovec piece{&unread, sizeof unread};
      const bool tls_failed = tls_ != nullptr && tls_->receive({&piece, 1}) < 0 && errno == EPROTO;
      status_ = tls_failed ? tls_error()
                           : base::error(
                                 Code::connect_failed,
                                 "data connection to {}: closed by the peer, whose log may say why",
                                 to_string(addresses_[next_address_ - 1]));
      close_socket();
    });
    registered_ = status_.ok();
  }

  // It was this address; perhaps there is another.
  void dial_failed(const Status& why) {
    close_socket();
    if (next_address_ < addresses_.size()) {
      dial_next();
    } else {
      status_ = why;
    }
  }

  Status tls_error() const {
    const Status why = tls_->failure();
    return base::error(why.code(), "data connection to {}: {}",
                       to_string(addresses_[next_address_ - 1]), why.message());
  }

  Status tune() {
    const int on = 1;
    // Transfers are gathered before they are sent; waiting for more would only delay them.
    if (setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
      return base::error(Code::system_error, "TCP_NODELAY: {}", std::strerror(errno));
    }
    return {};
  }

  void close_socket() {
    if (fd_ < 0) return;
    if (registered_) context_.reactor->remove(fd_);
    registered_ = false;
    tls_.reset();
    close(std::exchange(fd_, -1));
  }

  LinkContext& context_;
  std::shared_ptr<TcpReceiver> receiver_;
  std::shared_ptr<DeferredSends> deferred_;
  const std::optional<SocketAddress> source_;
  const std::shared_ptr<tls::Credentials> credentials_;
  RingRegion outgoing_;
  RingRegion incoming_;
  std::vector<SocketAddress> addresses_;
  size_t next_address_ = 0;
  int fd_ = -1;
  std::shared_ptr<tls::Stream> tls_;
  bool registered_ = false;
  bool connected_ = false;
  Status status_;
};

}  // namespace

const Capabilities kTcpCapabilities = {.name = "tcp"};

const Capabilities& TcpTransport::capabilities() const { return kTcpCapabilities; }

Status TcpTransport::available() const { return {}; }

uint64_t TcpTransport::memory_bytes(const ring::Layout& outgoing,
                                    const ring::Layout& incoming) const {
  return outgoing.region_bytes() + incoming.region_bytes();
}

std::unique_ptr<LinkSetup> TcpTransport::begin(LinkContext& context) {
  return std::make_unique<TcpSetup>(context, receiver_, deferred_, source_, credentials_);
}

}  // namespace faro::transport::tcp
