#include "transport/verbs/verbs_setup.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "transport/verbs/verbs_link.h"

namespace faro::transport::verbs {
namespace {

template <typename Message>
std::span<const std::byte> as_bytes(const Message& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace

VerbsSetup::VerbsSetup(LinkContext& context, ConnectionManager& manager,
                       std::shared_ptr<CompletionPoller> poller,
                       std::shared_ptr<DeferredSends> deferred, const VerbsOptions& options,
                       bool tells_address)
    : context_(context),
      manager_(manager),
      poller_(std::move(poller)),
      deferred_(std::move(deferred)),
      options_(options),
      tells_address_(tells_address),
      channel_count_(ChannelMap::count(options.sharing, context.outgoing)) {}

VerbsSetup::~VerbsSetup() { manager_.forget(context_.stream_token); }

Status VerbsSetup::start() {
  FARO_RETURN_IF_ERROR(manager_.start(*context_.reactor));
  FARO_RETURN_IF_ERROR(check_limits());
  FARO_RETURN_IF_ERROR(allocate());
  if (!context_.initiator) {
    manager_.expect(context_.stream_token, options_.connection, channel_count_, this);
    FARO_RETURN_IF_ERROR(tell_listener());
  }
  tell_memory();
  return {};
}

Status VerbsSetup::check_limits() const {
  const ibv_device_attr& device = manager_.device()->limits();
  const uint32_t most = static_cast<uint32_t>(device.max_qp_wr);
  if (options_.connection.send_depth > most || options_.connection.receives > most) {
    return base::error(
        Code::resource_limit,
        "{} takes {} work requests in a queue, but verbs.send_queue is {} and verbs.receives {}",
        manager_.device()->name(), most, options_.connection.send_depth,
        options_.connection.receives);
  }
  const uint32_t requests =
      LinkParts::requests_per_ring(context_.outgoing.ring_bytes, write_limit()) + 1;
  if (requests > LinkParts::chain_limit(options_.connection.send_depth)) {
    return base::error(Code::resource_limit,
                       "a transfer of a whole ring takes {} work requests of at most {} bytes, too "
                       "many for verbs.send_queue = {}; use a larger one, or a smaller ring.bytes",
                       requests, write_limit(), options_.connection.send_depth);
  }
  return {};
}

// Bytes of one WRITE: what the port takes, as long as that leaves room to count in 32 bits.
uint32_t VerbsSetup::write_limit() const {
  constexpr uint32_t kMost = uint32_t{1} << 30;
  ibv_port_attr port{};
  const bool known =
      ibv_query_port(manager_.device()->context(), manager_.device_port(), &port) == 0;
  return known && port.max_msg_sz != 0 ? std::min(port.max_msg_sz, kMost) : kMost;
}

Status VerbsSetup::allocate() {
  const auto make = [this](uint64_t bytes, Access access, RegisteredMemory& memory) -> Status {
    FARO_ASSIGN_OR_RETURN(
        memory, RegisteredMemory::make(manager_.device(), bytes, access, options_.huge_pages));
    return {};
  };
  write_limit_ = write_limit();
  FARO_RETURN_IF_ERROR(make(context_.outgoing.region_bytes(), Access::local_read, outgoing_));
  FARO_RETURN_IF_ERROR(make(context_.incoming.region_bytes(), Access::remote_write, incoming_));
  return make(channel_count_ * LinkParts::message_bytes(options_.connection.receives,
                                                        options_.connection.send_depth),
              Access::local_write, messages_);
}

Status VerbsSetup::tell_listener() {
  FARO_ASSIGN_OR_RETURN(const auto port, manager_.listen());
  wire::VerbsListen listen{};
  listen.kind = wire::VerbsSetupKind::listen;
  listen.port = port;
  if (tells_address_) {
    const tcp::SocketAddress& local = manager_.local();
    if (local.family() == AF_INET6) {
      listen.family = 6;
      std::memcpy(listen.address, &reinterpret_cast<const sockaddr_in6*>(local.get())->sin6_addr,
                  16);
    } else {
      listen.family = 4;
      std::memcpy(listen.address, &reinterpret_cast<const sockaddr_in*>(local.get())->sin_addr, 4);
    }
  }
  context_.send(as_bytes(listen));
  return {};
}

void VerbsSetup::tell_memory() {
  wire::VerbsMemory memory{};
  memory.kind = wire::VerbsSetupKind::memory;
  memory.key = incoming_.remote_key();
  memory.address = reinterpret_cast<uint64_t>(incoming_.base());
  memory.bytes = incoming_.bytes();
  memory.receives = options_.connection.receives;
  memory.takes_immediates = manager_.device()->has_immediates() ? 1 : 0;
  context_.send(as_bytes(memory));
}

Status VerbsSetup::on_message(std::span<const std::byte> message) {
  if (const auto listen = wire::load_verbs_listen(message)) return on_listen(*listen);
  if (const auto memory = wire::load_verbs_memory(message)) return on_memory(*memory);
  return base::error(Code::protocol_error, "a setup message of {} bytes that verbs does not know",
                     message.size());
}

Status VerbsSetup::on_listen(const wire::VerbsListen& listen) {
  if (!context_.initiator || !connections_.empty())
    return {Code::protocol_error, "a LISTEN out of place"};
  tcp::SocketAddress peer;
  if (listen.family == 0) {
    FARO_ASSIGN_OR_RETURN(const auto addresses, tcp::resolve(context_.peer_address));
    peer = addresses.front();
  } else if (listen.family == 4) {
    auto* address = reinterpret_cast<sockaddr_in*>(&peer.storage);
    address->sin_family = AF_INET;
    std::memcpy(&address->sin_addr, listen.address, 4);
    peer.length = sizeof *address;
  } else {
    auto* address = reinterpret_cast<sockaddr_in6*>(&peer.storage);
    address->sin6_family = AF_INET6;
    std::memcpy(&address->sin6_addr, listen.address, 16);
    peer.length = sizeof *address;
  }
  peer.set_port(listen.port);
  peer_device_ = peer;
  connections_.resize(channel_count_);
  for (uint32_t channel = 0; channel < channel_count_; ++channel)
    FARO_RETURN_IF_ERROR(dial(channel));
  return {};
}

Status VerbsSetup::dial(uint32_t channel) {
  tcp::SocketAddress local = manager_.local();
  local.set_port(0);
  FARO_ASSIGN_OR_RETURN(connections_[channel],
                        Connection::create(manager_.channel(), options_.connection));
  connections_[channel]->set_setup_handler(this);
  return connections_[channel]->resolve(local.get(), peer_device_.get());
}

Status VerbsSetup::on_memory(const wire::VerbsMemory& memory) {
  if (peer_.has_value()) return {Code::protocol_error, "a second MEMORY"};
  if (memory.bytes != context_.outgoing.region_bytes() ||
      memory.receives < Credits::kLeastReceives || memory.receives > Credits::kMostReceives) {
    return base::error(
        Code::protocol_error,
        "MEMORY of {} bytes with {} receives; expected {} bytes and {} to {} receives",
        memory.bytes, memory.receives, context_.outgoing.region_bytes(), Credits::kLeastReceives,
        Credits::kMostReceives);
  }
  peer_ = memory;
  return {};
}

Status VerbsSetup::on_stream(DataStream stream) {
  close(stream.fd);
  return {Code::protocol_error, "an unexpected data connection"};
}

// Receives are posted before the peer can send.
Status VerbsSetup::prepare(uint32_t channel) {
  Connection& connection = *connections_[channel];
  FARO_RETURN_IF_ERROR(connection.create_queue_pair(manager_.device()));
  return post_receives(connection.queue_pair(), messages_, channel, options_.connection.receives,
                       options_.connection.send_depth);
}

uint32_t VerbsSetup::channel_of(const Connection& connection) const {
  const auto found = std::find_if(connections_.begin(), connections_.end(),
                                  [&](const auto& each) { return each.get() == &connection; });
  return static_cast<uint32_t>(found - connections_.begin());
}

// rdma_cm chooses the port to dial from. For iWARP it is a TCP port, and rdma_cm does not know whether a socket has it
// already; then another port may work.
void VerbsSetup::on_resolved(Connection& connection) {
  const uint32_t channel = channel_of(connection);
  Status status = prepare(channel);
  if (status.ok()) status = connection.connect(context_.stream_token);
  if (status.code() == Code::address_in_use && redials_++ < kMostRedials) status = dial(channel);
  if (!status.ok()) on_failed(status);
}

void VerbsSetup::on_request(std::unique_ptr<Connection> connection) {
  connections_.push_back(std::move(connection));
  connections_.back()->set_setup_handler(this);
  Status status = prepare(static_cast<uint32_t>(connections_.size() - 1));
  if (status.ok()) status = connections_.back()->accept();
  if (!status.ok()) on_failed(status);
}

void VerbsSetup::on_failed(const Status& cause) {
  if (status_.ok()) status_ = cause;
}

LinkParts VerbsSetup::parts() {
  LinkParts parts;
  parts.send_depth = options_.connection.send_depth;
  parts.sharing = options_.sharing;
  parts.write_limit = write_limit_;
  parts.receives = options_.connection.receives;
  parts.peer_receives = peer_->receives;
  parts.peer_address = peer_->address;
  parts.peer_key = peer_->key;
  parts.immediates = options_.wants_immediates && manager_.device()->has_immediates() &&
                     peer_->takes_immediates == 1 && ImmediateCode(context_.outgoing).fits();
  parts.order = options_.order;
  for (auto& connection : connections_) {
    const uint32_t inline_bytes = connection->inline_bytes();
    parts.channels.push_back(
        {std::move(connection), inline_bytes, manager_.device()->raises_sigpipe()});
  }
  parts.outgoing = std::move(outgoing_);
  parts.incoming = std::move(incoming_);
  parts.messages = std::move(messages_);
  return parts;
}

std::unique_ptr<DataLink> VerbsSetup::take() {
  auto link = std::make_unique<VerbsLink>(context_, poller_, deferred_, parts());
  status_ = link->start();
  if (!status_.ok()) return nullptr;
  return link;
}

}  // namespace faro::transport::verbs
