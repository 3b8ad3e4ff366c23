// Setting a link up, and mending it: both take a data connection (tcp_connecting.h). No setup messages.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/unique_fd.h"
#include "transport/tcp/tcp_connecting.h"
#include "transport/tcp/tcp_link.h"
#include "transport/tcp/tcp_transport.h"
#include "wire/control.h"

namespace faro::transport::tcp {
namespace {

Status no_messages(std::span<const std::byte> message) {
  return base::error(Code::protocol_error, "setup message of {} bytes; tcp has none",
                     message.size());
}

// Its peer has closed it. -1, and errno, if there can be none.
int make_broken_socket() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  close(ends[1]);
  return base::above_standard(ends[0]);
}

class TcpSetup final : public LinkSetup {
 public:
  TcpSetup(LinkContext& context, TcpLink::Shared shared, const std::optional<SocketAddress>& source,
           std::shared_ptr<tls::Credentials> credentials)
      : context_(context),
        shared_(std::move(shared)),
        connecting_(context, source, std::move(credentials)) {}

  Status start() override {
    FARO_RETURN_IF_ERROR(allocate(context_.outgoing, outgoing_));
    FARO_RETURN_IF_ERROR(allocate(context_.incoming, incoming_));
    return connecting_.start();
  }
  Status on_message(std::span<const std::byte> message) override { return no_messages(message); }
  Status on_stream(DataStream stream) override { return connecting_.on_stream(std::move(stream)); }
  Status status() const override { return failure_.ok() ? connecting_.status() : failure_; }
  bool ready() const override { return connecting_.connected(); }
  std::unique_ptr<DataLink> take() override {
    DataStream stream = connecting_.take();
    // It has broken since this side was ready, and the peer may be up: a link that is broken can be mended.
    if (stream.fd < 0) stream.fd = make_broken_socket();
    auto link =
        std::make_unique<TcpLink>(context_, std::move(shared_), stream.fd, std::move(stream.tls),
                                  std::move(outgoing_), std::move(incoming_));
    failure_ = link->start();
    if (!failure_.ok()) return nullptr;
    return link;
  }

 private:
  static Status allocate(const ring::Layout& layout, RingRegion& region) {
    region = RingRegion(layout);
    if (region.ok()) return {};
    return base::error(Code::resource_limit, "{} bytes for the rings of a link: {}",
                       layout.region_bytes(), std::strerror(errno));
  }

  LinkContext& context_;
  TcpLink::Shared shared_;
  TcpConnecting connecting_;
  RingRegion outgoing_;
  RingRegion incoming_;
  Status failure_;
};

class TcpMending final : public LinkMending {
 public:
  TcpMending(LinkContext& context, TcpLink& link, const std::optional<SocketAddress>& source,
             std::shared_ptr<tls::Credentials> credentials)
      : link_(link), connecting_(context, source, std::move(credentials)) {
    link_.give_up_connection();
  }

  Status start() override { return connecting_.start(); }
  Status on_message(std::span<const std::byte> message) override { return no_messages(message); }
  Status on_stream(DataStream stream) override { return connecting_.on_stream(std::move(stream)); }
  Status status() const override { return connecting_.status(); }
  bool ready() const override { return connecting_.connected(); }
  Status finish() override {
    DataStream stream = connecting_.take();
    return link_.take_connection(stream.fd, std::move(stream.tls));
  }

 private:
  TcpLink& link_;
  TcpConnecting connecting_;
};

}  // namespace

const Capabilities kTcpCapabilities = {.name = "tcp", .mends = wire::kMends, .dials_data = true};

const Capabilities& TcpTransport::capabilities() const { return kTcpCapabilities; }

Status TcpTransport::available() const { return {}; }

uint64_t TcpTransport::memory_bytes(const ring::Layout& outgoing,
                                    const ring::Layout& incoming) const {
  return RingRegion::bytes_of(outgoing) + RingRegion::bytes_of(incoming);
}

uint64_t TcpTransport::state_bytes(const ring::Layout& outgoing,
                                   const ring::Layout& incoming) const {
  return TcpLink::bytes(outgoing, incoming);
}

std::unique_ptr<LinkSetup> TcpTransport::begin(LinkContext& context) {
  return std::make_unique<TcpSetup>(
      context, TcpLink::Shared{.receiver = receiver_, .deferred = deferred_, .turns = turns_},
      source_, credentials_);
}

std::unique_ptr<LinkMending> TcpTransport::mend(LinkContext& context, DataLink& link) {
  return std::make_unique<TcpMending>(context, static_cast<TcpLink&>(link), source_, credentials_);
}

}  // namespace faro::transport::tcp
