#include "transport/verbs/connection_manager.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/unique_fd.h"

namespace faro::transport::verbs {
namespace {

constexpr int kBacklog = 128;
constexpr int kMostPorts = 10;  // to try; it is rare that one is taken

template <typename... Args>
Status unavailable(fmt::format_string<Args...> text, Args&&... args) {
  return base::error(Code::transport_unavailable, text, std::forward<Args>(args)...);
}

// Checked before librdmacm is called, which prints warnings if there is no device.
bool has_devices() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/sys/class/infiniband"), closedir);
  if (folder == nullptr) return false;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<ConnectionManager>> ConnectionManager::open(
    const tcp::SocketAddress& local) {
  if (!has_devices()) {
    return unavailable("this machine has no RDMA device (/sys/class/infiniband has none)");
  }
  if (access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0) {
    return unavailable(
        "/dev/infiniband/rdma_cm: {}; load the module rdma_ucm, and let this user open the device",
        std::strerror(errno));
  }
  const base::StandardHeld held;  // while the drivers open descriptors of their own
  std::unique_ptr<ConnectionManager> manager(new ConnectionManager);
  manager->local_ = local;
  rdma_event_channel* const channel = rdma_create_event_channel();
  if (channel == nullptr) return unavailable("rdma_create_event_channel: {}", std::strerror(errno));
  manager->channel_ = {channel, rdma_destroy_event_channel};
  const int flags = fcntl(manager->channel_->fd, F_GETFL);
  if (flags < 0 || fcntl(manager->channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return unavailable("rdma_cm's events: {}", std::strerror(errno));
  if (rdma_create_id(channel, &manager->listener_, nullptr, RDMA_PS_TCP) != 0)
    return unavailable("rdma_create_id: {}", std::strerror(errno));

  tcp::SocketAddress any_port = local;
  any_port.set_port(0);
  const std::string text = tcp::to_string(any_port);
  if (rdma_bind_addr(manager->listener_, reinterpret_cast<sockaddr*>(&any_port.storage)) != 0) {
    return unavailable(
        "no RDMA device owns the address {} (rdma_bind_addr: {}); name the node by an address of "
        "an RDMA device, or set verbs.address",
        text, std::strerror(errno));
  }
  if (manager->listener_->verbs == nullptr) {
    return unavailable(
        "the address {} belongs to no RDMA device in particular; name the node by an address of an "
        "RDMA device, or set verbs.address",
        text);
  }
  FARO_ASSIGN_OR_RETURN(manager->device_, Device::open(manager->listener_->verbs));
  return manager;
}

ConnectionManager::~ConnectionManager() {
  if (reactor_ != nullptr) reactor_->remove(channel_->fd);
  watch_.reset();
  device_.reset();
  if (listener_ != nullptr) rdma_destroy_id(listener_);
}

Status ConnectionManager::start(Reactor& reactor) {
  if (device_is_lost_) return device_lost();
  if (reactor_ != nullptr) return {};
  FARO_RETURN_IF_ERROR(reactor.add(channel_->fd, EPOLLIN, [this](uint32_t) { on_events(); }));
  reactor_ = &reactor;
  watch_ = std::make_unique<DeviceWatch>(*device_, [this] {
    device_is_lost_ = true;
    if (lost_) lost_(device_lost());
  });
  return watch_->start(reactor);
}

// No link goes on without it, so none is mended.
Status ConnectionManager::device_lost() const {
  return base::error(Code::system_error, "the local RDMA device {} failed, or is being removed",
                     device_->name());
}

// rdma_cm chose the port. For iWARP it is a TCP port, and rdma_cm does not know whether a socket has it already; then
// another port may work.
Result<uint16_t> ConnectionManager::listen() {
  for (int tries = 1; !listening_; ++tries) {
    if (rdma_listen(listener_, kBacklog) == 0) {
      listening_ = true;
    } else if (errno != EADDRINUSE || tries == kMostPorts) {
      return unavailable("rdma_listen: {}", std::strerror(errno));
    } else {
      FARO_RETURN_IF_ERROR(bind_anew());
    }
  }
  return ntohs(rdma_get_src_port(listener_));
}

// The new one is bound before the old one is destroyed, so that the device stays open.
Status ConnectionManager::bind_anew() {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
    return unavailable("rdma_create_id: {}", std::strerror(errno));
  tcp::SocketAddress any_port = local_;
  any_port.set_port(0);
  if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any_port.storage)) != 0) {
    const Status failed = unavailable("rdma_bind_addr: {}", std::strerror(errno));
    rdma_destroy_id(id);
    return failed;
  }
  rdma_destroy_id(std::exchange(listener_, id));
  return {};
}

void ConnectionManager::expect(const StreamToken& token, const ConnectionOptions& options,
                               uint32_t count, Expecting* expecting) {
  expected_[token] = {options, count, expecting};
}

void ConnectionManager::forget(const StreamToken& token) { expected_.erase(token); }

// An event is acknowledged before it is handled: a handler may destroy the event's id, which waits for the
// acknowledgement.
void ConnectionManager::on_events() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_.get(), &event) == 0) {
    const rdma_cm_event_type type = event->event;
    const int status = event->status;
    rdma_cm_id* const id = event->id;
    // Read before the event is acknowledged: then a Dial may destroy the id of a connection that was given up.
    void* const connection = type == RDMA_CM_EVENT_CONNECT_REQUEST ? nullptr : id->context;
    StreamToken token{};
    // Devices may pad private data: the token is its beginning.
    const bool has_token =
        type == RDMA_CM_EVENT_CONNECT_REQUEST && event->param.conn.private_data_len >= token.size();
    if (has_token) std::memcpy(token.data(), event->param.conn.private_data, token.size());
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_DEVICE_REMOVAL) device_is_lost_ = true;
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      on_request(id, token, has_token);
    } else if (connection != nullptr) {
      static_cast<Connection*>(connection)->on_event(type, status);
    }  // else it is the listener's event: connections get their own if the device is removed
  }
}

void ConnectionManager::on_request(rdma_cm_id* id, const StreamToken& token, bool has_token) {
  const auto found = has_token ? expected_.find(token) : expected_.end();
  if (found == expected_.end()) {
    rdma_reject(id, nullptr, 0);
    rdma_destroy_id(id);
    return;
  }
  const Expected expected = found->second;
  if (--found->second.count == 0) expected_.erase(found);  // the token is used up
  expected.expecting->on_request(Connection::adopt(channel_, id, expected.options));
}

}  // namespace faro::transport::verbs
