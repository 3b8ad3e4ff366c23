#include "transport/verbs/verbs_connecting.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "transport/verbs/credits.h"
#include "transport/verbs/path_map.h"

namespace faro::transport::verbs {
namespace {

template <typename Message>
std::span<const std::byte> as_bytes(const Message& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace

VerbsConnecting::VerbsConnecting(LinkContext& context, ConnectionManager& manager,
                                 const VerbsOptions& options, bool tells_address)
    : context_(context),
      manager_(manager),
      options_(options),
      tells_address_(tells_address),
      path_count_(PathMap::count(options.sharing, context.outgoing, context.incoming)) {}

VerbsConnecting::~VerbsConnecting() { manager_.forget(token_); }

Status VerbsConnecting::start(const RegisteredMemory& incoming, const RegisteredMemory& messages) {
  messages_ = &messages;
  token_ = context_.stream_token;
  if (!context_.initiator) {
    manager_.expect(token_, options_.connection, path_count_, this);
    FARO_RETURN_IF_ERROR(tell_listener());
  }
  tell_memory(incoming);
  return {};
}

Status VerbsConnecting::tell_listener() {
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

void VerbsConnecting::tell_memory(const RegisteredMemory& incoming) {
  wire::VerbsMemory memory{};
  memory.kind = wire::VerbsSetupKind::memory;
  memory.key = incoming.remote_key();
  memory.address = reinterpret_cast<uint64_t>(incoming.base());
  memory.bytes = incoming.bytes();
  memory.receives = options_.connection.receives;
  memory.takes_immediates = manager_.device()->has_immediates() ? 1 : 0;
  context_.send(as_bytes(memory));
}

Status VerbsConnecting::on_message(std::span<const std::byte> message) {
  if (const auto listen = wire::load_verbs_listen(message)) return on_listen(*listen);
  if (const auto memory = wire::load_verbs_memory(message)) return on_memory(*memory);
  return base::error(Code::protocol_error, "a setup message of {} bytes that verbs does not know",
                     message.size());
}

Status VerbsConnecting::on_listen(const wire::VerbsListen& listen) {
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
  connections_.resize(path_count_);
  for (uint32_t path = 0; path < path_count_; ++path) FARO_RETURN_IF_ERROR(dial(path));
  return {};
}

Status VerbsConnecting::dial(uint32_t path) {
  tcp::SocketAddress local = manager_.local();
  local.set_port(0);
  FARO_ASSIGN_OR_RETURN(connections_[path],
                        Connection::create(manager_.channel(), options_.connection));
  connections_[path]->set_setup_handler(this);
  return connections_[path]->resolve(local.get(), peer_device_.get());
}

Status VerbsConnecting::on_memory(const wire::VerbsMemory& memory) {
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

// Receives are posted before the peer can send.
Status VerbsConnecting::prepare(uint32_t path) {
  Connection& connection = *connections_[path];
  FARO_RETURN_IF_ERROR(connection.create_queue_pair(manager_.device()));
  return post_receives(connection.queue_pair(), *messages_, path, options_.connection.receives,
                       options_.connection.send_depth);
}

uint32_t VerbsConnecting::path_of(const Connection& connection) const {
  const auto found = std::find_if(connections_.begin(), connections_.end(),
                                  [&](const auto& each) { return each.get() == &connection; });
  return static_cast<uint32_t>(found - connections_.begin());
}

void VerbsConnecting::on_resolved(Connection& connection) {
  Status status = prepare(path_of(connection));
  if (status.ok()) status = connection.connect(token_, *context_.reactor);
  if (!status.ok()) on_failed(connection, status);
}

void VerbsConnecting::on_request(std::unique_ptr<Connection> connection) {
  connections_.push_back(std::move(connection));
  connections_.back()->set_setup_handler(this);
  Status status = prepare(static_cast<uint32_t>(connections_.size() - 1));
  if (status.ok()) status = connections_.back()->accept();
  if (!status.ok()) on_failed(*connections_.back(), status);
}

// rdma_cm chooses the port to dial from. For iWARP it is a TCP port, and rdma_cm does not know whether a socket has it
// already; then another port may work.
void VerbsConnecting::on_failed(Connection& connection, const Status& cause) {
  Status status = cause;
  if (context_.initiator && cause.code() == Code::address_in_use && redials_++ < kMostRedials)
    status = dial(path_of(connection));
  if (status_.ok()) status_ = status;
}

std::vector<PathParts> VerbsConnecting::take() {
  std::vector<PathParts> paths;
  for (auto& connection : std::exchange(connections_, {})) {
    const uint32_t inline_bytes = connection->inline_bytes();
    paths.push_back({std::move(connection), inline_bytes, manager_.device()->raises_sigpipe(),
                     manager_.device()->acknowledges_writes()});
  }
  return paths;
}

}  // namespace faro::transport::verbs
