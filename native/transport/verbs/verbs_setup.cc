#include "transport/verbs/verbs_setup.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace faro::transport::verbs {

Status refuse_stream(const DataStream& stream) {
  close(stream.fd);
  return {Code::protocol_error, "an unexpected data connection"};
}

VerbsSetup::VerbsSetup(LinkContext& context, ConnectionManager& manager,
                       std::shared_ptr<CompletionPoller> poller,
                       std::shared_ptr<DeferredSends> deferred, const VerbsOptions& options,
                       bool tells_address)
    : context_(context),
      manager_(manager),
      poller_(std::move(poller)),
      deferred_(std::move(deferred)),
      options_(options),
      connecting_(context, manager, options, tells_address) {}

Status VerbsSetup::start() {
  FARO_RETURN_IF_ERROR(manager_.start(*context_.reactor));
  FARO_RETURN_IF_ERROR(check_limits());
  FARO_RETURN_IF_ERROR(allocate());
  return connecting_.start(incoming_, messages_);
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
  return make(connecting_.path_count() * LinkParts::message_bytes(options_.connection.receives,
                                                                  options_.connection.send_depth),
              Access::local_write, messages_);
}

Status VerbsSetup::on_stream(DataStream stream) { return refuse_stream(stream); }

LinkParts VerbsSetup::parts() {
  const wire::VerbsMemory& peer = connecting_.peer();
  LinkParts parts;
  parts.send_depth = options_.connection.send_depth;
  parts.sharing = options_.sharing;
  parts.write_limit = write_limit_;
  parts.receives = options_.connection.receives;
  parts.peer_receives = peer.receives;
  parts.peer_address = peer.address;
  parts.peer_key = peer.key;
  parts.immediates = options_.wants_immediates && manager_.device()->has_immediates() &&
                     peer.takes_immediates == 1 && ImmediateCode(context_.outgoing).fits();
  parts.order = options_.order;
  parts.paths = connecting_.take();
  parts.outgoing = std::move(outgoing_);
  parts.incoming = std::move(incoming_);
  parts.messages = std::move(messages_);
  return parts;
}

std::unique_ptr<DataLink> VerbsSetup::take() {
  auto link = std::make_unique<VerbsLink>(context_, poller_, deferred_, parts());
  failure_ = link->start();
  if (!failure_.ok()) return nullptr;
  return link;
}

Status VerbsMending::start() {
  FARO_RETURN_IF_ERROR(manager_.start(*context_.reactor));
  return MendingOver::start();
}

}  // namespace faro::transport::verbs
