#include "links/socket_network.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/each.h"
#include "base/error.h"
#include "base/log.h"
#include "links/host_identity.h"
#include "transport/tcp/socket_address.h"
#include "wire/control.h"
#include "wire/preamble.h"

namespace faro::links {
namespace {

// The most streams that have no handle any more and wait for their peer to close; beyond it the oldest is closed.
constexpr size_t kLingeringLimit = 256;

std::string with_real_port(const std::string& address, const ListeningSocket& listener) {
  const size_t colon = address.rfind(':');
  if (address.substr(colon + 1) != "0") return address;
  const std::string& bound = listener.address();
  return address.substr(0, colon) + bound.substr(bound.rfind(':'));
}

// Remembers which address of a name was reached, so that a data connection to the same peer needs no resolver.
std::string reached(int fd, const std::string& dialled) {
  transport::tcp::SocketAddress peer;
  peer.length = sizeof peer.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0)
    return dialled;
  return transport::tcp::to_string(peer);
}

// This node listens there, so the address is numeric and resolves without a name server.
std::optional<transport::tcp::SocketAddress> source_of(const ListeningSocket& listener) {
  const auto listening = transport::tcp::resolve(listener.address());
  if (!listening.ok()) return std::nullopt;
  return transport::tcp::source_of(listening.value().front());
}

bool on_loopback(const ListeningSocket& listener) {
  const auto listening = transport::tcp::resolve(listener.address());
  return listening.ok() && transport::tcp::is_loopback(listening.value().front());
}

}  // namespace

Result<std::unique_ptr<SocketNetwork>> SocketNetwork::create(const base::Settings& settings,
                                                             const std::string& address) {
  FARO_ASSIGN_OR_RETURN(auto listener,
                        ListeningSocket::bind(settings.listen.empty() ? address : settings.listen));
  return create(settings, std::move(listener), address);
}

Result<std::unique_ptr<SocketNetwork>> SocketNetwork::create(const base::Settings& settings,
                                                             ListeningSocket listener,
                                                             const std::string& address) {
  FARO_ASSIGN_OR_RETURN(auto credentials, tls::Credentials::load(settings));
  FARO_ASSIGN_OR_RETURN(auto reactor, EpollReactor::create(base::SystemClock::instance()));
  std::string reached_at = with_real_port(address, listener);
  return std::unique_ptr<SocketNetwork>(
      new SocketNetwork(std::move(reactor), std::move(listener), std::move(reached_at),
                        std::move(credentials), settings.tls == "on"));
}

SocketNetwork::SocketNetwork(std::unique_ptr<EpollReactor> reactor, ListeningSocket listener,
                             std::string local_address,
                             std::shared_ptr<tls::Credentials> credentials, bool encrypts_data)
    : reactor_(std::move(reactor)),
      local_address_(std::move(local_address)),
      open_to_others_(!on_loopback(listener)),
      source_(source_of(listener)),
      credentials_(std::move(credentials)),
      encrypts_data_(encrypts_data),
      host_identity_(links::host_identity()),
      socket_acceptor_(*reactor_, std::move(listener), credentials_) {}

SocketNetwork::~SocketNetwork() {
  // Streams remove themselves from the reactor; handles that still exist must be gone by now.
  for (const Lingering& each : lingering_) each.stream->close();
}

void SocketNetwork::set_acceptor(Acceptor* acceptor) {
  acceptor_ = acceptor;
  if (acceptor == nullptr) return socket_acceptor_.shut();
  const Status opened = socket_acceptor_.open(this);
  if (!opened.ok())
    base::log(LogLevel::error, "{}: cannot accept: {}", local_address_, opened.message());
}

void SocketNetwork::connect(const std::string& address, Connected done) {
  connect_in_turn(
      address, false, [] { return true; }, std::move(done));
}

void SocketNetwork::connect_in_turn(const std::string& address, bool soon,
                                    std::function<bool()> begins, Connected done) {
  const auto place = dials_.emplace(dials_.end());
  auto finished = [this, place, address, done = std::move(done)](Result<base::UniqueFd> socket) {
    Dialling dialled = std::move(*place);  // until this call has returned
    dials_.erase(place);
    on_dialled(address, std::move(socket), std::move(dialled.turn), done);
  };
  place->dial = std::make_unique<Dial>(*reactor_, address, source_, std::move(finished));
  place->begins = std::move(begins);
  // Deferred, because the caller does not expect an answer before this returns. If the entry still exists when the
  // command runs, it is this one: nothing else erases it.
  const auto defer = [this, place] { reactor_->defer([this, place] { begin(place); }); };
  if (credentials_ != nullptr) {
    const auto order = soon ? tls::Turns::Order::first : tls::Turns::Order::last;
    place->turn = credentials_->turns().take(address, order, defer);
    if (!place->turn.has_come()) return;
  }
  defer();
}

void SocketNetwork::begin(std::list<Dialling>::iterator place) {
  if (place->begins()) return place->dial->start();
  dials_.erase(place);
}

void SocketNetwork::on_dialled(const std::string& address, Result<base::UniqueFd> socket,
                               tls::Turns::Turn turn, const Connected& done) {
  if (!socket.ok()) return done(socket.status());
  const int fd = socket.value().get();
  std::string peer = reached(fd, address);
  std::shared_ptr<tls::Stream> encryption;
  if (credentials_ != nullptr) {
    turn.connected();
    encryption = credentials_->dial(fd, transport::tcp::host_of(address));
    if (encryption == nullptr) return done(Status(Code::system_error, "no memory for TLS"));
  }
  auto stream = make_stream(tls::Socket(std::move(socket.value()), std::move(encryption)),
                            std::move(peer), std::move(turn));
  if (!stream.ok()) return done(stream.status());
  const wire::Preamble preamble = wire::control_preamble();
  stream.value()->send_raw(std::as_bytes(std::span(&preamble, 1)));
  done(std::unique_ptr<ControlConnection>(std::make_unique<SocketConnection>(stream.value())));
}

bool SocketNetwork::run_once(base::Nanoseconds until) {
  base::Each each;
  each.run([&] { settle(); });
  const bool unsettled = !unsettled_.empty();
  until = unsettled ? 0 : std::min(until, socket_acceptor_.next_deadline());
  if (!lingering_.empty()) until = std::min(until, lingering_.front().until);
  if (credentials_ != nullptr) until = std::min(until, credentials_->turns().next_deadline());
  bool worked = true;
  each.run([&] { worked = reactor_->run_once(until); });
  each.run([&] { settle(); });
  const base::Nanoseconds now = reactor_->clock().now_ns();
  each.run([&] { socket_acceptor_.check_deadlines(now); });
  if (credentials_ != nullptr) each.run([&] { credentials_->turns().advance(); });
  drop_lingering(now);
  each.rethrow();
  return worked || unsettled;
}

void SocketNetwork::mark_unsettled(std::shared_ptr<ControlStream> stream) {
  unsettled_.push_back(std::move(stream));
}

void SocketNetwork::settle() {
  std::vector<std::shared_ptr<ControlStream>> streams;
  streams.swap(unsettled_);
  base::Each each;
  for (const auto& stream : streams) each.run([&] { stream->settle(); });
  each.rethrow();
}

void SocketNetwork::keep_lingering(std::shared_ptr<ControlStream> stream) {
  if (lingering_.size() >= kLingeringLimit) {
    lingering_.front().stream->close();
    lingering_.pop_front();
  }
  lingering_.push_back({std::move(stream), reactor_->clock().now_ns() + ControlStream::kLinger});
}

void SocketNetwork::drop_lingering(base::Nanoseconds now) {
  lingering_.remove_if([](const Lingering& each) { return each.stream->ended(); });
  while (!lingering_.empty() && now >= lingering_.front().until) {
    lingering_.front().stream->close();
    lingering_.pop_front();
  }
}

Result<std::shared_ptr<ControlStream>> SocketNetwork::make_stream(tls::Socket socket,
                                                                  std::string peer_address,
                                                                  tls::Turns::Turn turn) {
  // Control messages are small, and the peer is waiting for them.
  const int one = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  auto stream =
      std::make_shared<ControlStream>(static_cast<ControlStream::Owner&>(*this), std::move(socket),
                                      std::move(peer_address), std::move(turn));
  FARO_RETURN_IF_ERROR(stream->start());
  return stream;
}

void SocketNetwork::on_control(tls::Socket socket, const std::string& peer_address) {
  if (credentials_ != nullptr && socket.tls() == nullptr) {
    return refuse_without_tls(std::move(socket), peer_address);
  }
  auto stream = make_stream(std::move(socket), peer_address);
  if (!stream.ok() || acceptor_ == nullptr) return;
  acceptor_->on_connection(std::make_unique<SocketConnection>(stream.value()));
}

void SocketNetwork::on_data(const std::array<std::byte, 16>& token, tls::Socket socket,
                            const std::string& peer_address) {
  if (acceptor_ == nullptr) return;
  if (encrypts_data_ && socket.tls() == nullptr) {
    return acceptor_->on_unauthenticated(
        peer_address, Status(Code::authentication_failed, "a data connection without TLS"));
  }
  transport::DataStream data;
  data.tls = socket.tls();
  data.fd = socket.take_fd().release();
  acceptor_->on_data_stream(token, std::move(data));
}

// The peer speaks plaintext, so it is answered in plaintext.
void SocketNetwork::refuse_without_tls(tls::Socket socket, const std::string& peer_address) {
  const Status cause =
      base::error(Code::authentication_failed, "{} wants TLS (security.tls), {} speaks without",
                  local_address_, peer_address);
  if (const auto stream = make_stream(std::move(socket), peer_address); stream.ok()) {
    SocketConnection(*stream).send(
        wire::encode_refuse({cause.code(), false, std::string(cause.message())}));
  }
  if (acceptor_ != nullptr) acceptor_->on_unauthenticated(peer_address, cause);
}

base::Nanoseconds SocketNetwork::may_try_at(const std::string& peer_address) {
  return acceptor_ == nullptr ? base::kForever : acceptor_->may_try_at(peer_address);
}

size_t SocketNetwork::may_try_together(const std::string& peer_address) {
  return acceptor_ == nullptr ? 0 : acceptor_->may_try_together(peer_address);
}

size_t SocketNetwork::expected_streams() {
  return acceptor_ == nullptr ? 0 : acceptor_->expected_streams();
}

void SocketNetwork::on_turn(const std::string& peer_address) {
  if (acceptor_ != nullptr) acceptor_->on_turn(peer_address);
}

void SocketNetwork::on_other(tls::Socket socket, const std::string& peer_address) {
  if (answer_to_others_.empty()) return;
  if (const auto stream = make_stream(std::move(socket), peer_address); stream.ok()) {
    (*stream)->send_raw(answer_to_others_);
    (*stream)->detach();
  }
}

void SocketNetwork::on_refused(base::UniqueFd socket, const std::string& peer_address,
                               const Status& cause) {
  // The connection lingers, so that the alert that was sent arrives.
  if (const auto stream = make_stream(tls::Socket(std::move(socket)), peer_address); stream.ok()) {
    (*stream)->detach();
  }
  if (acceptor_ != nullptr) acceptor_->on_unauthenticated(peer_address, cause);
}

}  // namespace faro::links
