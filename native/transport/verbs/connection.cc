#include "transport/verbs/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace faro::transport::verbs {
namespace {

// Time for one step of rdma_cm, whose own attempts are a few seconds apart.
constexpr int kResolveMs = 5000;

// For a request of up to 32 bytes, Linux's siw may look in the address space of a thread that has none (siw_try_1seg,
// seen in 6.1), and then drops the connection. It already has the bytes of an inlined request.
constexpr uint32_t kLeastInlineOnIwarp = 64;

Status connect_error(const char* call, int error) {
  return {error == EADDRINUSE ? Code::address_in_use : Code::connect_failed,
          fmt::format("{}: {}", call, std::strerror(error))};
}

std::string event_text(rdma_cm_event_type type, int status) {
  // For a rejection `status` is the device's reason code, else a negative errno.
  const std::string detail = status < 0 ? std::strerror(-status) : fmt::format("status {}", status);
  switch (type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return fmt::format("the peer's address cannot be reached from an RDMA device ({})", detail);
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return fmt::format("no RDMA route to the peer ({})", detail);
    case RDMA_CM_EVENT_UNREACHABLE:
      return fmt::format("the peer's RDMA device does not answer ({})", detail);
    case RDMA_CM_EVENT_REJECTED:
      return fmt::format("the peer's RDMA device refused the connection ({})", detail);
    case RDMA_CM_EVENT_DISCONNECTED:
      return "RDMA connection closed by the peer";
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return "the local RDMA device was removed";
    default:
      return fmt::format("{} ({})", rdma_event_str(type), detail);
  }
}

}  // namespace

Connection::Connection(std::shared_ptr<ConnectionParts> parts, const ConnectionOptions& options)
    : options_(options), parts_(std::move(parts)) {
  parts_->id->context = this;
}

Result<std::unique_ptr<Connection>> Connection::create(std::shared_ptr<rdma_event_channel> channel,
                                                       const ConnectionOptions& options) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP) != 0)
    return connect_error("rdma_create_id", errno);
  return adopt(std::move(channel), id, options);
}

std::unique_ptr<Connection> Connection::adopt(std::shared_ptr<rdma_event_channel> channel,
                                              rdma_cm_id* id, const ConnectionOptions& options) {
  auto parts = std::make_shared<ConnectionParts>(std::move(channel), id);
  return std::unique_ptr<Connection>(new Connection(std::move(parts), options));
}

// When the call returns the device has released all memory, unless a dial goes on: then its queue pair reaches nobody, and is
// destroyed when that is over.
Connection::~Connection() {
  disconnect();
  if (dial_ != nullptr) dial_->give_up();
  parts_->id->context = nullptr;
}

Status Connection::resolve(const sockaddr* local, const sockaddr* peer) {
  tune();
  // rdma_cm takes them as mutable and changes neither.
  if (rdma_resolve_addr(parts_->id, const_cast<sockaddr*>(local), const_cast<sockaddr*>(peer),
                        kResolveMs) != 0)
    return connect_error("rdma_resolve_addr", errno);
  return {};
}

// A device that does not know an option works without it.
void Connection::tune() {
  uint8_t traffic_class = options_.traffic_class;
  if (traffic_class != 0)
    (void)rdma_set_option(parts_->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, 1);
  uint8_t timeout = options_.timeout;
  if (timeout != 0)
    (void)rdma_set_option(parts_->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1);
}

Status Connection::create_queue_pair(const std::shared_ptr<Device>& device) {
  if (parts_->id->verbs != device->context()) {
    return base::error(Code::transport_unavailable,
                       "the connection goes by {}, but this node uses {}; verbs.address chooses",
                       parts_->id->verbs == nullptr
                           ? "no RDMA device"
                           : ibv_get_device_name(parts_->id->verbs->device),
                       device->name());
  }
  parts_->device = device;
  const int entries = static_cast<int>(options_.send_depth + options_.receives);
  parts_->queue = ibv_create_cq(device->context(), entries, nullptr, device->channel(), 0);
  if (parts_->queue == nullptr) return verbs_error("ibv_create_cq", errno);

  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = parts_->queue;
  attributes.cap.max_send_wr = options_.send_depth;
  attributes.cap.max_recv_wr = options_.receives;
  attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
  attributes.qp_type = IBV_QPT_RC;
  const ibv_qp_cap wanted = attributes.cap;
  uint32_t inline_bytes = options_.inline_bytes;
  if (device->is_iwarp()) inline_bytes = std::max(inline_bytes, kLeastInlineOnIwarp);
  for (;; inline_bytes /= 2) {
    attributes.cap = wanted;  // a call changes it
    attributes.cap.max_inline_data = inline_bytes;
    parts_->pair = ibv_create_qp(device->domain(), &attributes);
    if (parts_->pair != nullptr) break;
    // A device that cannot inline this much refuses, and does not say how much it could inline.
    if (inline_bytes == 0) return verbs_error("ibv_create_qp", errno);
  }
  inline_bytes_ = inline_bytes;
  return enter(IBV_QPS_INIT);
}

Status Connection::enter(ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(parts_->id, &attributes, &mask) != 0)
    return connect_error("rdma_init_qp_attr", errno);
  if (state == IBV_QPS_RTR) apply_path(options_.path, attributes);
  const int error = ibv_modify_qp(parts_->pair, &attributes, mask);
  return error == 0 ? Status() : connect_error("ibv_modify_qp", error);
}

// A connected queue pair has other attributes, already in its first state. On iWARP the kernel does the rest.
Status Connection::make_ready() {
  FARO_RETURN_IF_ERROR(enter(IBV_QPS_INIT));
  if (parts_->device->is_iwarp()) return {};
  FARO_RETURN_IF_ERROR(enter(IBV_QPS_RTR));
  return enter(IBV_QPS_RTS);
}

rdma_conn_param Connection::parameters() const noexcept {
  rdma_conn_param parameters{};
  parameters.qp_num = parts_->pair->qp_num;
  // No READs are used, but iWARP may need one to begin.
  parameters.responder_resources = 1;
  parameters.initiator_depth = 1;
  parameters.retry_count = options_.retry_count;
  parameters.rnr_retry_count = options_.rnr_retry_count;
  return parameters;
}

Status Connection::connect(const StreamToken& token, Reactor& reactor) {
  rdma_conn_param asked = parameters();
  asked.private_data = token.data();
  asked.private_data_len = static_cast<uint8_t>(token.size());
  if (parts_->device->connects_in_call()) {
    dial_ = std::make_shared<Dial>(
        parts_, reactor, [this](int error) { fail_setup(connect_error("rdma_connect", error)); });
    return dial_->start(asked);
  }
  if (rdma_connect(parts_->id, &asked) != 0) return connect_error("rdma_connect", errno);
  return {};
}

void Connection::fail_setup(const Status& cause) {
  if (setup_handler_ != nullptr) setup_handler_->on_failed(*this, cause);
}

Status Connection::accept() {
  tune();
  FARO_RETURN_IF_ERROR(make_ready());
  rdma_conn_param agreed = parameters();
  if (rdma_accept(parts_->id, &agreed) != 0) return connect_error("rdma_accept", errno);
  return {};
}

void Connection::disconnect() noexcept {
  if (disconnected_.exchange(true, std::memory_order_acq_rel) || parts_->pair == nullptr) return;
  if (dial_ == nullptr || !dial_->disconnects_later()) parts_->disconnect();
}

// The peer has accepted; rdma_establish tells it that this side has, too.
void Connection::on_response() {
  Status status = make_ready();
  if (status.ok() && rdma_establish(parts_->id) != 0)
    status = connect_error("rdma_establish", errno);
  if (!status.ok()) rdma_reject(parts_->id, nullptr, 0);
  if (!status.ok()) return fail_setup(status);
  if (setup_handler_ != nullptr) setup_handler_->on_established();
}

void Connection::on_event(rdma_cm_event_type type, int status) {
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(parts_->id, kResolveMs) != 0)
        fail_setup(connect_error("rdma_resolve_route", errno));
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (setup_handler_ != nullptr) setup_handler_->on_resolved(*this);
      return;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return on_response();
    case RDMA_CM_EVENT_ESTABLISHED:
      if (setup_handler_ != nullptr) setup_handler_->on_established();
      return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:  // the end of a connection's numbers; nothing to do
    case RDMA_CM_EVENT_ADDR_CHANGE:    // the interface moved (bonding); packets still arrive
      return;
    default:
      break;
  }
  if (handler_ != nullptr) {
    const bool is_local = type == RDMA_CM_EVENT_DEVICE_REMOVAL;
    handler_->on_disconnected(
        {is_local ? Code::system_error : Code::peer_lost, event_text(type, status)});
  } else {
    fail_setup({Code::connect_failed, event_text(type, status)});
  }
}

}  // namespace faro::transport::verbs
